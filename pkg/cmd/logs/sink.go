package logs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
)

// palette are the colours of members. Red is left to errors.
var palette = []iostreams.Style{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}

// sink prints lines, whole ones at a time.
type sink struct {
	io               *iostreams.IOStreams
	format           string
	timestamps       bool
	include, exclude *regexp.Regexp

	mu sync.Mutex
}

func (o *Options) sink() *sink {
	return &sink{io: o.IO, format: o.Output.Output, timestamps: o.Timestamps, include: o.include, exclude: o.exclude}
}

// entry is a line in JSON.
type entry struct {
	Time      string `json:"time,omitempty"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Role      string `json:"role"`
	Index     int    `json:"index"`
	Container string `json:"container"`
	Line      string `json:"line"`
}

// Line implements logs.Sink.
func (s *sink) Line(l logs.Line) {
	if s.include != nil && !s.include.MatchString(l.Text) || s.exclude != nil && s.exclude.MatchString(l.Text) {
		return
	}
	text := s.text(l) + "\n"
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.io.VerbatimOut(), text) // as kubectl: progress bars and colours are a part of logs
}

func (s *sink) text(l logs.Line) string {
	if s.format == printer.JSON {
		data, err := json.Marshal(entry{l.Stamp, l.Source.Pod.Namespace, l.Source.Pod.Name, string(l.Source.Pod.UID), l.Source.Role, l.Source.Index, l.Source.Container, l.Text})
		if err != nil {
			return fmt.Sprintf("%q", l.Text) // strings always encode
		}
		return string(data)
	}
	text := l.Text
	if s.timestamps && l.Stamp != "" {
		text = l.Stamp + " " + text
	}
	if s.format == raw {
		return text
	}
	return s.prefix(l.Source, s.io.OutStyled) + " " + text
}

// prefix is [ROLE-INDEX], in a colour that depends on nothing else.
func (s *sink) prefix(m logs.Source, styled func(iostreams.Style, string) string) string {
	return styled(palette[(7*m.Order+m.Index)%len(palette)], "["+m.Name()+"]")
}

// Note implements logs.Sink.
func (s *sink) Note(m logs.Source, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.io.VerbatimErrOut(), "%s %s\n", s.prefix(m, s.io.ErrStyled), iostreams.Escape(text)) // the colours of members are none of the others'
}

// Lost implements logs.Sink.
func (s *sink) Lost(err error) {
	s.note("note: the connection broke (%v); reading on as soon as the API server can be reached", err)
}

// note prints a remark about the whole.
func (s *sink) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.io.ErrOut, format+"\n", args...)
}

// whyInterval is how often a user who waits gets a reason.
const whyInterval = 15 * time.Second
