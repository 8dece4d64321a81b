package scheduler

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/scheduler/gangcache"
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
	opts, err := parse(cmd, []string{"--kubeconfig", "/theirs", "--leader-elect=false", "--serve", "volcano,kube-batch", "--serve", "koord-scheduler", "--group-priority", "object"})
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
	if opts.priority != gangcache.ObjectPriority {
		t.Errorf("--group-priority is %s", opts.priority)
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
	for _, args := range [][]string{{"--no-such-flag"}, {"word"}, {"--leader-elect=perhaps"}, {"--group-priority=highest"}} {
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
	for _, want := range []string{"gangctl scheduler [flags]", "--leader-elect", "--config", "--serve", "--group-priority", `(default "members")`, DefaultName} {
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

// A file that names no profile is about our name, not about kube-scheduler's.
func TestOwnProfile(t *testing.T) {
	const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"no profiles", header, []string{DefaultName}},
		{"an empty list", header + "profiles: []\n", []string{DefaultName}},
		{"a profile without a name", header + "profiles:\n- plugins: {}\n", []string{DefaultName}},
		{"a name", header + "profiles:\n- schedulerName: mine\n", []string{"mine"}},
		{"kube-scheduler's name", header + "profiles:\n- schedulerName: default-scheduler\n- schedulerName: mine\n", []string{"default-scheduler", "mine"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := options.LoadConfigFromFile(klog.Background(), file)
			if err != nil {
				t.Fatal(err)
			}
			if err := ownProfile(klog.Background(), file, cfg.Profiles); err != nil {
				t.Fatal(err)
			}
			if got := profileNames(cfg.Profiles); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if err := ownProfile(klog.Background(), "", nil); err != nil {
		t.Error(err)
	}
}
