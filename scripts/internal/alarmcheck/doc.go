// Package alarmcheck says what CloudWatch would say about an alarm.
//
// The problem it solves: an alarm is a promise that somebody hears of a fault, and nobody
// sees that it is broken. A threshold in the wrong unit, a metric that is reported under
// another name, a period in which there is never a number: each leaves an alarm green for
// ever. So the alarms of the synthesised template, and not a second description of them,
// are evaluated over what the functions really write and what the local parts of AWS
// really count.
//
// [Alarms] reads the alarms out of a template, [ReadLines] the numbers out of lines of the
// embedded metric format, and [Alarm.State] decides. All three are pure: time comes in as an
// argument, and there is no state but what is handed in.
//
// How CloudWatch decides is told in two pages, which the comments call "evaluation" and
// "missing data":
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html and
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
//
// Not imitated: that numbers arrive late, percentiles that are approximated, alarms on
// other alarms, anomaly detection, and whatever a template here does not use. Reading such
// an alarm is an error, and never a guess.
package alarmcheck
