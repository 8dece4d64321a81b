package unplaced

import (
	"fmt"
	"strings"
	"testing"
)

func TestSentences(t *testing.T) {
	for text, s := range map[string]Sentence{
		"2 of the 4 members that its gang needs fit: 4 of 8 GPUs free":                                                    {Required: 4, Fit: 2, Why: "4 of 8 GPUs free"},
		"0 of the 4 members that its gang needs fit: no room; none: at all":                                               {Required: 4, Why: "no room; none: at all"},
		"its gang has its minimum, with 4 members placed, and there is no room for more: 4 of 8 GPUs free":                {Required: 5, Fit: 4, AboveMin: true, Why: "4 of 8 GPUs free"},
		"its gang has its minimum, with 4 members placed, and the search for room for more was cut off: none within 1s":   {Required: 5, Fit: 4, AboveMin: true, Cut: true, Why: "none within 1s"},
		"the search for room for the 40 members that its gang needs was cut off: none within 1s":                          {Required: 40, Cut: true, Why: "none within 1s"},
		"the search for room for the 40 members that its gang needs was cut off, with room for 12 so far: none within 1s": {Required: 40, Fit: 12, Cut: true, Why: "none within 1s"},
	} {
		if got := s.String(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		if got, ok := Parse(text); !ok || got != s {
			t.Errorf("%q reads as %+v, %t", text, got, ok)
		}
		got, plain, ok := FromCondition(fmt.Sprintf("0/3 nodes are available: %s.", text))
		if !ok || got != s || plain != text {
			t.Errorf("of the condition: %+v, %q, %t", got, plain, ok)
		}
		if _, _, ok := FromCondition(text); ok {
			t.Errorf("%q is no message of the scheduler", text)
		}
	}
	if got, want := (Sentence{Required: 4, Fit: 2, Why: "no"}).OfGang(), "2 of the 4 members that the gang needs fit: no"; got != want {
		t.Errorf("of the gang: %q, want %q", got, want)
	}
	for _, other := range []string{"", "0/3 nodes are available: 3 Insufficient cpu.", "0/3 nodes are available: 2 of the 4 members fit: no.", "2 of the 4 members that its gang needs fit"} {
		if _, _, ok := FromCondition(other); ok {
			t.Errorf("%q is read", other)
		}
		if _, ok := Parse(other); ok {
			t.Errorf("%q is read as a sentence", other)
		}
	}
}

// A line of which only the beginning is seen begins with what differs between gangs.
func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"0 of the 4 members that its gang needs fit: no room: none at all":                               "no room: none at all (0 of the 4 members that its gang needs fit)",
		"0 of the 4 members that its gang needs fit: ":                                                   "0 of the 4 members that its gang needs fit: ",
		"0/4 nodes are available: 4 Insufficient cpu. no victims were found.":                            "4 Insufficient cpu. no victims were found (0/4 nodes are available)",
		"0/4 nodes are available: ":                                                                      "0/4 nodes are available: ",
		"its gang has its minimum, with 4 members placed, and there is no room for more: no GPU is free": "no GPU is free (its gang has its minimum, with 4 members placed, and there is no room for more)",
		"no pods yet": "no pods yet", "": "",
	} {
		if got := Brief(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0/3 nodes are available: 2 of the 4 members that its gang needs fit: \xff.")
	f.Add("0/3 nodes are available: 99999999999999999999 of the 4 members that its gang needs fit: no")
	f.Add("0/3 nodes are available: the search for room for the 4 members that its gang needs was cut off, with room for 0 so far: no.")
	f.Add("0/3 nodes are available: its gang has its minimum, with 04 members placed, and there is no room for more: no.")
	f.Fuzz(func(t *testing.T, message string) {
		s, text, ok := FromCondition(message)
		if !strings.Contains(message, text) {
			t.Errorf("%q of %q", text, message)
		}
		if ok && s.String() != text {
			t.Errorf("%q reads as %+v, which is %q", text, s, s)
		}
	})
}
