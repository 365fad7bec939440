// Command year writes a file of flights for `go run ./scripts/ops import`: those of the
// shipped day, again on each of so many days.
//
//	go run ./scripts/local/flights/year -days 408 -out year.csv
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"

	"holdfast/scripts/local/flights"
)

func main() {
	days := flag.Int("days", 408, "how many days; 696 slots each")
	out := flag.String("out", "year.csv", "the file to write")
	flag.Parse()
	if err := write(*out, *days); err != nil {
		fmt.Fprintln(os.Stderr, "year:", err)
		os.Exit(1)
	}
}

func write(name string, days int) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	err = flights.WriteDays(buffered, days)
	return errors.Join(err, buffered.Flush(), file.Close())
}
