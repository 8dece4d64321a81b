package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// GangctlEnv names the environment variable with a ready-built gangctl, as BinaryEnv does for gangctl-sandbox.
const GangctlEnv = "GANGCTL_BIN"

// Main is what TestMain of a package does whose tests run both programs: use gets the paths of those that the environment names, or
// of builds that are gone after the tests; closes run after the tests while the programs are still there. It returns the exit code.
func Main(m *testing.M, use func(gangctl, sandbox string), closes ...func() error) (code int) {
	gangctl, sandbox := os.Getenv(GangctlEnv), os.Getenv(BinaryEnv)
	if gangctl == "" || sandbox == "" {
		dir, err := os.MkdirTemp("", "gangctl-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "build the programs:", err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		build := exec.Command("go", "build", "-o", dir, commands+"gangctl", commands+"gangctl-sandbox")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build the programs:", err)
			return 1
		}
		gangctl, sandbox = filepath.Join(dir, "gangctl"), filepath.Join(dir, "gangctl-sandbox")
		if err := os.Setenv(BinaryEnv, sandbox); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // collecting garbage lists Endpoints: 250 warnings bury a test's own output
	use(gangctl, sandbox)
	code = m.Run()
	for _, end := range closes {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
