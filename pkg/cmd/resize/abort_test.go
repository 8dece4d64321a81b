package resize

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
)

// testOptions are options with the flags that were typed.
type testOptions struct {
	*Options
	flagSet *pflag.FlagSet
	errOut  *bytes.Buffer
}

// options are those of a run without a terminal.
func options(yes bool) testOptions {
	io, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	flags := pflag.NewFlagSet("resize", pflag.ContinueOnError)
	o := &Options{JobOptions: cmdutil.JobOptions{IO: io}, Flags: submit.NewResizeFlags(flags), DryRun: dryRunNone, Yes: yes, Prompter: prompt.New(io), Timeout: time.Minute, Interval: time.Millisecond}
	return testOptions{o, flags, errOut}
}

// What has begun is taken back after any write, and so is it by a run that finds another one which died.
func TestAbortAtEveryStep(t *testing.T) {
	for begun := 1; begun <= 2; begun++ {
		for dies := -1; dies < begun; dies++ {
			t.Run(fmt.Sprintf("begun with %d writes, killed after %d", begun, dies), func(t *testing.T) {
				a := newAPIServer(t)
				a.interrupted(t, begun)
				if a.dies = dies; dies >= 0 {
					if err := options(true).abort(t.Context(), a.target(t)); err == nil {
						t.Error("the run that is killed fails")
					}
					a.dies = -1
				}
				if err := options(true).abort(t.Context(), a.target(t)); err != nil {
					t.Error(err)
				}
				if got := a.stored(t); got != before {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

// A job that was changed by hand, so that its change cannot be made any more, goes on as it is.
func TestAbortOfAJobThatWasEdited(t *testing.T) {
	a := newAPIServer(t)
	a.interrupted(t, 2)
	job := a.get(t, tfjobs)
	if err := unstructured.SetNestedField(job.Object, int64(3), "spec", "tfReplicaSpecs", "Worker", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := a.Tracker().Update(tfjobs, job, "team"); err != nil {
		t.Fatal(err)
	}
	if err := options(true).abort(t.Context(), a.target(t)); err != nil {
		t.Error(err)
	}
	if got, want := a.stored(t), "3 workers, minimum 3, suspended false, begun false"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Whoever may write the job may have written what the group gets back: that is confirmed.
func TestAbortIsConfirmed(t *testing.T) {
	a := newAPIServer(t)
	a.interrupted(t, 2)
	err := failure.From(options(false).abort(t.Context(), a.target(t)))
	if err == nil || !strings.HasSuffix(err.Hint, "gangctl resize tfjob/llama -n team --abort --yes") || a.writes > 0 {
		t.Errorf("got %+v after %d writes", err, a.writes)
	}
}

// A job of which no change has begun has nothing to take back.
func TestAbortOfNothing(t *testing.T) {
	a := newAPIServer(t)
	if err := options(true).abort(t.Context(), a.target(t)); err == nil || !strings.Contains(err.Error(), "no change of it has begun") {
		t.Errorf("got %v", err)
	}
}

// A pod that does not end is what the error is about, and the job stays as it is until it has.
func TestAbortWaitsForPods(t *testing.T) {
	a := newAPIServer(t)
	a.interrupted(t, 2)
	o, to := options(true), a.target(t)
	o.Timeout, to.client.Typed = 20*time.Millisecond, busy(t)
	err := failure.From(o.abort(t.Context(), to))
	if err == nil || err.Code != failure.CodeTimedOut || !strings.HasSuffix(err.Message, "1 pod still terminating after 20ms") || !strings.Contains(err.Hint, "--abort") {
		t.Errorf("got %+v", err)
	}
	if got := a.stored(t); got != "4 workers, minimum 4, suspended true, begun true" {
		t.Errorf("got %s", got)
	}
}
