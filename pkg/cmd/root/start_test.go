package root

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// initialised is what the runtime reports of the package-level variables of one of our packages, with GODEBUG=inittrace=1.
var initialised = regexp.MustCompile(`(?m)^init (github\.com/gangctl/gangctl/\S+) @.* (\d+) bytes, \d+ allocs$`)

// Every command, be it a completion, pays for the package-level variables of all packages. An expression like `.{1,500}` compiles to half a mebibyte.
func TestPackagesStartWithLittle(t *testing.T) {
	const limit = 200 << 10
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := initialised.FindAllStringSubmatch(string(out), -1)
	if len(all) < 10 || !strings.Contains(string(out), "init runtime ") {
		t.Fatalf("%d of our packages were traced:\n%s", len(all), out)
	}
	for _, m := range all {
		bytes, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if bytes > limit {
			t.Errorf("package %s takes %d bytes before main begins: want at most %d", m[1], bytes, limit)
		}
	}
}
