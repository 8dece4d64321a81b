package whypending

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const smaps = `00400000-02929000 r-xp 00000000 fe:00 12 /usr/bin/gangctl
Size:              38052 kB
Rss:               27300 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
02929000-056fb000 r--p 02529000 fe:00 12 /usr/bin/gangctl
Anonymous:             0 kB
056fb000-056fc000 r--p 052fb000 fe:00 12 /usr/bin/gangctl
Anonymous:             4 kB
056fc000-057d2000 rw-p 052fc000 fe:00 12 /usr/bin/gangctl
Anonymous:             0 kB
1aeed1c00000-1aeedf800000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7fd13521f000-7fd135375000 r-xp 00000000 fe:00 13 /usr/lib/libc.so.6
Anonymous:             0 kB
`

// What the loader has changed, what can be written and what is not the program's must stay: it could not come back.
func TestUntouched(t *testing.T) {
	got := untouched(bufio.NewScanner(strings.NewReader(smaps)), "/usr/bin/gangctl")
	if want := []part{{0x400000, 0x2929000}, {0x2929000, 0x56fb000}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	for _, broken := range []string{"", "x-y r-xp 0 0 0 /p\nAnonymous: 0 kB\n", "10-z r-xp 0 0 0 /p\nAnonymous: 0 kB\n", "20-10 r-xp 0 0 0 /p\nAnonymous: 0 kB\n", "Anonymous: 0 kB\n"} {
		if got := untouched(bufio.NewScanner(strings.NewReader(broken)), "/p"); got != nil {
			t.Errorf("%q: got %x", broken, got)
		}
	}
}

// The program goes on, and holds less of itself.
func TestGiveBack(t *testing.T) {
	before := resident(t)
	giveBack()
	if after := resident(t); after >= before {
		t.Errorf("%d kB before, %d kB after", before, after)
	}
}

// resident is how much memory the process has that is part of files, in kB.
func resident(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
