package terminal

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/prerequisite"
)

func TestScreen(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"text", "one\r\ntwo", "one\ntwo"},
		{"wraps", "0123456789ab", "0123456789\nab"},
		{"waits at the edge", "0123456789\r\nx", "0123456789\nx"},
		{"scrolls", "1\r\n2\r\n3\r\n4", "2\n3\n4"},
		{"moves", "abc\x1b[1;2HX\x1b[2GY\x1b[1CZ", "aYcZ"},
		{"back", "abc\b\bX", "aXc"},
		{"erases to the end", "abcdef\x1b[3D\x1b[K", "abc"},
		{"erases below", "1\r\n2\r\n3\x1b[2;1H\x1b[J", "1"},
		{"deletes", "abcdef\x1b[1;2H\x1b[2P", "adef"},
		{"inserts", "abc\x1b[1;2H\x1b[2@XY", "aXYbc"},
		{"another screen", "old\x1b[?1049h\x1b[Hnew", "new"},
		{"ignores", "\x1b]0;title\x07a\x1b[?25lb\x1b(Bc\x1b=d", "abcd"},
		{"letters", "ä…☃", "ä…☃"},
		{"tab", "a\tb", "a       b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewScreen(10, 3)
			for i := range len(tt.in) { // a byte at a time: nothing may depend on how it comes
				s.Write([]byte{tt.in[i]})
			}
			if tt.name == "ignores" && s.Title != "title" {
				t.Errorf("title %q", s.Title)
			}
			if s.String() != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestSVG(t *testing.T) {
	s := NewScreen(20, 5)
	s.Write([]byte("a <b> & c\r\n\x1b[1;31mred\x1b[0m plain   far\r\n\x1b[7mrev\x1b[0m"))
	picture := s.SVG(`top "w"`)
	d := xml.NewDecoder(strings.NewReader(picture))
	var texts []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	if got := strings.Join(texts, "|"); got != `top "w"|a <b> & c|red|plain|far|rev` {
		t.Errorf("got %s", got)
	}
	for _, want := range []string{`fill="#ff6b6b" font-weight="bold">red<`, `fill="` + background + `">rev<`} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
	if strings.Contains(picture, "script") {
		t.Error("it has a script")
	}
}

func TestTerminal(t *testing.T) {
	term, err := Start(exec.Command("sh", "-c", `stty size; test -t 1 && read word && echo "got $word"`), 40, 10)
	if err != nil {
		prerequisite.Missing(t, err.Error())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := term.WaitFor(ctx, func(s *Screen) bool { return strings.HasPrefix(s.String(), "10 40") }); err != nil {
		t.Error(err)
	}
	if err := term.Type("it\r"); err != nil {
		t.Error(err)
	}
	if _, err := term.WaitFor(ctx, func(s *Screen) bool { return strings.Contains(s.String(), "got it") }); err != nil {
		t.Error(err)
	}
	if err := term.Stop(); err != nil && !strings.Contains(err.Error(), "signal: interrupt") {
		t.Error(err)
	}
}
