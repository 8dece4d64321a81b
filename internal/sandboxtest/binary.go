package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// commands is where the programs are built from; program is the package of one.
const (
	commands = "github.com/gangctl/gangctl/cmd/"
	program  = commands + "gangctl-sandbox"
)

// build is the one build of a test binary, however many tests request it.
type build struct {
	once sync.Once
	path string
	err  error
}

var shared build

func (b *build) make() {
	dir, err := os.MkdirTemp("", "gangctl-sandbox-test-")
	if err != nil {
		b.err = err
		return
	}
	b.path = filepath.Join(dir, "gangctl-sandbox")
	if out, err := exec.Command("go", "build", "-o", b.path, program).CombinedOutput(); err != nil {
		b.err = fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
}

// Binary returns the path of gangctl-sandbox: the value of BinaryEnv, or a build.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(BinaryEnv); path != "" {
		return path
	}
	shared.once.Do(shared.make)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.path
}

// RemoveBuild removes the build, if there was one; for the end of TestMain.
func RemoveBuild() error {
	if shared.path == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(shared.path))
}
