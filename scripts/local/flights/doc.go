// Package flights has the real input of the local run: the flights that left New York on
// one day of 2013, as slots to sell.
//
// The problem it solves: invented slots are all alike. Real ones have two seats or 379,
// several departures of one flight number, and times in more than one UTC day. The file is
// part of the program, so that a local run needs no download and no setting. README.md
// beside it says where it comes from, what in it is derived, and its licence.
package flights
