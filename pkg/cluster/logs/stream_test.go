package logs

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// A line without an end is cut, and the next one is whole.
func TestLongLines(t *testing.T) {
	const head = "2026-01-02T03:04:05Z "
	long := strings.Repeat("x", 3*maxLine)
	for name, tt := range map[string]struct {
		text string
		want []int
	}{
		"long":          {head + long + "\n" + head + "next\n", []int{maxLine - len(head) + len("…"), len("next")}},
		"long and last": {head + long, []int{maxLine - len(head) + len("…")}},
		"just fits":     {head + long[:maxLine-len(head)-1] + "\n", []int{maxLine - len(head) - 1}},
	} {
		s := &stream{reader: bufio.NewReaderSize(strings.NewReader(tt.text), bufferSize), rest: true}
		var got []int
		for {
			_, at, text, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || at.IsZero() {
				t.Fatalf("%s: %v, %v", name, at, err)
			}
			got = append(got, len(text))
		}
		if len(got) != len(tt.want) || got[0] != tt.want[0] || got[len(got)-1] != tt.want[len(got)-1] {
			t.Errorf("%s: got lines of %v bytes, want %v", name, got, tt.want)
		}
	}
}
