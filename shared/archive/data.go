package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"holdfast/shared/ledger"
	"holdfast/shared/objects"
)

// batchBytesMax bounds the lines of a batch before they are compressed. A batch is in
// memory three times: as it was read, as it is written, and as it is read back.
const batchBytesMax = 8 << 20

// line is one subject of a data object: the items of the table that it was, as they were.
type line struct {
	Kind    ledger.ArchiveKind `json:"kind"`
	ID      string             `json:"id"`
	Version ledger.Version     `json:"version"`
	// Items are the item of the subject first, and its events in their order.
	Items []json.RawMessage `json:"items"`
}

// subject is what the line is of.
func (l line) subject() ledger.ArchiveSubject { return subjectOf(l.Kind, l.ID) }

// encodeLine writes one line with its end. The same items give the same bytes.
func encodeLine(l line) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	// The items stay as they are: escaping would change the bytes of a text with < in it.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return nil, fmt.Errorf("encode the archived %s %s: %w", l.Kind, l.ID, err)
	}
	return out.Bytes(), nil
}

// compress is the same bytes for the same lines: the header carries no time and no name.
func compress(lines [][]byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress a batch: %w", err)
	}
	for _, l := range lines {
		if _, err := writer.Write(l); err != nil {
			return nil, fmt.Errorf("compress a batch: %w", err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress a batch: %w", err)
	}
	return out.Bytes(), nil
}

// decompress reads a data object into its lines, each with its end. It never gives more
// than batchBytesMax: what is compressed can be a thousand times as large.
func decompress(object []byte) ([][]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("decompress a batch: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, batchBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("decompress a batch: %w", err)
	}
	if len(text) > batchBytesMax {
		return nil, fmt.Errorf("decompress a batch: %w", objects.ErrTooLarge)
	}
	if err := reader.Close(); err != nil {
		return nil, fmt.Errorf("decompress a batch: %w", err)
	}
	var lines [][]byte
	for l := range bytes.Lines(text) {
		lines = append(lines, l)
	}
	return lines, nil
}

// decodeLine reads one line.
func decodeLine(text []byte) (line, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return line{}, fmt.Errorf("decode an archived line: %w", err)
	}
	if l.ID == "" || l.Version < 1 || len(l.Items) == 0 || l.Kind != ledger.ArchiveHolds && l.Kind != ledger.ArchiveReservations {
		return line{}, errors.New("decode an archived line: it lacks a part")
	}
	return l, nil
}

// data is a data object as it was read: the lines by their subject.
type data struct {
	lines map[ledger.ArchiveSubject]storedLine
}

type storedLine struct {
	line
	text []byte
}

// decodeData reads a data object. A subject that occurs twice is an error: one of the two
// lines would be lost.
func decodeData(object []byte) (data, error) {
	texts, err := decompress(object)
	if err != nil {
		return data{}, err
	}
	d := data{lines: make(map[ledger.ArchiveSubject]storedLine, len(texts))}
	for _, text := range texts {
		l, err := decodeLine(text)
		if err != nil {
			return data{}, err
		}
		if _, twice := d.lines[l.subject()]; twice {
			return data{}, fmt.Errorf("decode a batch: %s %s has two lines", l.Kind, l.ID)
		}
		d.lines[l.subject()] = storedLine{l, text}
	}
	return d, nil
}

// subjectOf and idOf turn a subject into its id within its kind and back.
func subjectOf(kind ledger.ArchiveKind, id string) ledger.ArchiveSubject {
	if kind == ledger.ArchiveHolds {
		return ledger.ArchiveSubject{Hold: ledger.HoldID(id)}
	}
	return ledger.ArchiveSubject{Reservation: ledger.ReservationID(id)}
}

func idOf(s ledger.ArchiveSubject) string {
	if s.Hold != "" {
		return string(s.Hold)
	}
	return string(s.Reservation)
}
