package hostile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/golden"
)

// unnamed are the characters that a file's name does not have.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9]+`)

// TestCorpora holds the files of the attacks to the tables: a program counts fields and values, so it means something else when those
// change. What a fuzzer found has a name of its own, and stays as long as it does no harm.
func TestCorpora(t *testing.T) {
	for name, tt := range targets() {
		made, err := newTarget(tt)
		if err != nil {
			t.Fatal(err)
		}
		seeds := made.seeds()
		if len(seeds) < 2 {
			t.Errorf("%s has %d attacks", name, len(seeds))
		}
		for _, attack := range slices.Sorted(maps.Keys(seeds)) {
			file := filepath.Join("testdata", "fuzz", name, strings.Trim(unnamed.ReplaceAllString(attack, "-"), "-"))
			want := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\nstring(%q)\n", seeds[attack], "")
			if golden.Update() {
				golden.Write(t, file, want)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("%s is not what the attack %q is now (%v): go test ./test/hostile -run TestCorpora -update", file, attack, err)
			}
		}
	}
}
