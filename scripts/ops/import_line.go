package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// importLineBytesMax bounds a line of a file. It is the bound of a request's body: a longer
// row could not be sent to the API either.
const importLineBytesMax = 65_536

// byteOrderMark may stand at the beginning of a file in UTF-8; some spreadsheets write it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// What can be wrong with a line before anything is read from it.
var (
	errLineTooLong = errors.New("the line has more than 65536 bytes; a row that long can't be carried out")
	errLineNotUTF8 = errors.New("the line is not UTF-8; save the file in that encoding")
)

// line is one line of a file, without its end.
type line struct {
	// number counts the lines from 1, and end is where the next one begins.
	number, end int64
	text        []byte
	// err is why the line can't be read; the next one can.
	err error
}

// lineReader reads a file line by line, in bounded memory. A line ends with \n or \r\n.
type lineReader struct {
	reader *bufio.Reader
	number int64
	offset int64
}

// newLineReader reads source, of which so many lines and bytes have been read already.
func newLineReader(source io.Reader, number, offset int64) *lineReader {
	return &lineReader{bufio.NewReaderSize(source, importLineBytesMax), number, offset}
}

// next returns the next line that is not empty, and io.EOF at the end of the file.
func (r *lineReader) next() (line, error) {
	for {
		next, err := r.read()
		if err != nil || next.err != nil || len(bytes.TrimSpace(next.text)) > 0 {
			return next, err
		}
	}
}

func (r *lineReader) read() (line, error) {
	text, err := r.reader.ReadSlice('\n')
	bytesRead := int64(len(text))
	tooLong := errors.Is(err, bufio.ErrBufferFull)
	text = bytes.Clone(text) // the buffer is used again
	for errors.Is(err, bufio.ErrBufferFull) {
		var more []byte
		more, err = r.reader.ReadSlice('\n')
		bytesRead += int64(len(more))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return line{}, err
	}
	if bytesRead == 0 {
		return line{}, io.EOF
	}
	if r.offset == 0 {
		text = bytes.TrimPrefix(text, byteOrderMark)
	}
	r.number++
	r.offset += bytesRead
	out := line{number: r.number, end: r.offset, text: bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))}
	switch {
	case tooLong:
		out.text, out.err = nil, errLineTooLong
	case !utf8.Valid(out.text):
		out.err = errLineNotUTF8
	}
	return out, nil
}
