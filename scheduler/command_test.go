package scheduler

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// under returns the command below a root that has flags of its own, as in
// gangctl.
func under(t *testing.T) (*cobra.Command, *bytes.Buffer) {
	t.Helper()
	root := &cobra.Command{Use: "gangctl", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().String("kubeconfig", "", "of the root")
	cmd := NewCommand()
	root.AddCommand(cmd)
	out := &bytes.Buffer{}
	root.SetOut(out)
	root.SetErr(out)
	return cmd, out
}

func TestFlags(t *testing.T) {
	cmd, out := under(t)
	opts, err := parse(cmd, []string{"--kubeconfig", "/theirs", "--leader-elect=false", "--serve", "volcano,kube-batch", "--serve", "koord-scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	if opts.Deprecated.Kubeconfig != "/theirs" {
		t.Errorf("--kubeconfig is %q: it went to the root's flag of that name", opts.Deprecated.Kubeconfig)
	}
	if opts.LeaderElection.LeaderElect {
		t.Error("--leader-elect=false is not heeded")
	}
	if got := strings.Join(opts.serve, " "); got != "volcano kube-batch koord-scheduler" {
		t.Errorf("--serve is %s", got)
	}
	config, err := defaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Profiles[0].SchedulerName; got != DefaultName {
		t.Errorf("schedulerName %q, want %q", got, DefaultName)
	}
	gangs := false
	for _, plugin := range config.Profiles[0].Plugins.MultiPoint.Enabled {
		gangs = gangs || plugin.Name == "GangScheduling"
	}
	if !gangs {
		t.Error("the default profile does not schedule gangs")
	}
	if out.Len() != 0 {
		t.Errorf("printed %q", out)
	}
}

func TestBadUsage(t *testing.T) {
	for _, args := range [][]string{{"--no-such-flag"}, {"word"}, {"--leader-elect=perhaps"}} {
		cmd, _ := under(t)
		_, err := parse(cmd, args)
		if got := failure.From(err); got == nil || got.Code != failure.CodeUsage || got.Hint == "" {
			t.Errorf("scheduler %v: %+v, want a usage error with a hint", args, got)
		}
	}
}

func TestHelp(t *testing.T) {
	cmd, out := under(t)
	cmd.Root().SetArgs([]string{"scheduler", "--help"})
	if err := cmd.Root().Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gangctl scheduler [flags]", "--leader-elect", "--config", "--serve", DefaultName} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, out)
		}
	}
}

func TestOwnLease(t *testing.T) {
	const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	tests := []struct {
		name, file, flag string
		want             string
	}{
		{"no file", "", "", "kube-scheduler"}, // our own defaults are in defaultConfig
		{"a file that says nothing of it", header, "", DefaultName},
		{"a file that names another", header + "leaderElection: {resourceName: mine}\n", "", "kube-scheduler"},
		{"a flag that names another", header, "mine", "mine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := options.NewOptions()
			flags := opts.Flags.FlagSet("leader election")
			if tt.file != "" {
				opts.ConfigFile = filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(opts.ConfigFile, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.flag != "" {
				if err := flags.Set("leader-elect-resource-name", tt.flag); err != nil {
					t.Fatal(err)
				}
			}
			if err := ownLease(klog.Background(), opts); err != nil {
				t.Fatal(err)
			}
			if got := opts.LeaderElection.ResourceName; got != tt.want {
				t.Errorf("lease %q, want %q", got, tt.want)
			}
		})
	}
	opts := options.NewOptions()
	opts.ConfigFile = "/does/not/exist"
	if err := ownLease(klog.Background(), opts); err == nil || !strings.Contains(err.Error(), opts.ConfigFile) {
		t.Errorf("missing file: %v, want an error that names it", err)
	}
}

// A gate of the engine that would have it wait for objects that nobody reads.
func TestGatesThatAreRefused(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.GenericWorkload: true, features.TopologyAwareWorkloadScheduling: true, features.CompositePodGroup: true,
	})
	cmd, _ := under(t)
	_, err := parse(cmd, nil)
	if got := failure.From(err); got == nil || got.Code != failure.CodeUsage || !strings.Contains(got.Error(), "composite PodGroups are not supported") {
		t.Errorf("got %v, want a usage error", err)
	}
}
