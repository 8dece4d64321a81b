package paste

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tree is gangctl with some of its commands and flags, whose command line has been read.
func tree(t *testing.T, args ...string) *Completer {
	t.Helper()
	root := &cobra.Command{Use: "gangctl", SilenceErrors: true, SilenceUsage: true}
	connection := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	connection.SortFlags = false
	for _, name := range []string{"kubeconfig", "context", "token", "as", "namespace", "proxy-url", "request-timeout"} {
		connection.String(name, "", "")
	}
	connection.StringArray("as-group", nil, "")
	connection.Bool("insecure-skip-tls-verify", false, "")
	root.PersistentFlags().AddFlagSet(connection)
	root.PersistentFlags().String("profile", "", "")
	root.AddGroup(&cobra.Group{ID: "jobs"}, &cobra.Group{ID: "cluster"}, &cobra.Group{ID: "settings"})
	c := New(root, connection, "jobs", "settings")
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { c.Run(cmd) }
	add := func(group, name string, flags ...string) *cobra.Command {
		cmd := &cobra.Command{Use: name, GroupID: group, Run: func(*cobra.Command, []string) {}}
		for _, flag := range flags {
			cmd.Flags().String(flag, "", "")
		}
		root.AddCommand(cmd)
		return cmd
	}
	add("jobs", "get")
	add("jobs", "list")
	add("jobs", "submit", "from", "dry-run")
	add("jobs", "why-pending", "from")
	node := &cobra.Command{Use: "node", Run: func(*cobra.Command, []string) {}}
	node.Flags().String("from", "", "")
	add("jobs", "top").AddCommand(node)
	add("cluster", "install")
	add("settings", "config")
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComplete(t *testing.T) {
	typed := []string{"get", "--context", "staging"}
	for name, tt := range map[string]struct {
		typed      []string
		text, want string
	}{
		"nothing typed":         {[]string{"get"}, "see `gangctl get a -n b`, or kubectl get nodes", "see `gangctl get a -n b`, or kubectl get nodes"},
		"a sentence":            {typed, "look at it with `gangctl get a -n b`, or at its pods: kubectl -n b get pods", "look at it with `gangctl --context staging get a -n b`, or at its pods: kubectl --context staging -n b get pods"},
		"lines":                 {typed, "kubectl cordon n1\nkubectl get a | kubectl replace -f -", "kubectl --context staging cordon n1\nkubectl --context staging get a | kubectl --context staging replace -f -"},
		"no command":            {typed, "gangctl does not know this; remove it with kubectl, or kubectl would delete it", "gangctl does not know this; remove it with kubectl, or kubectl would delete it"},
		"another program":       {typed, "gangctl-sandbox up", "gangctl-sandbox up"},
		"without a cluster":     {typed, "gangctl config view, gangctl get --help, kubectl patch --local -f -", "gangctl config view, gangctl get --help, kubectl patch --local -f -"},
		"kubectl config":        {[]string{"get", "--kubeconfig", "k", "--as=ann"}, "kubectl config view --minify", "kubectl --kubeconfig k config view --minify"},
		"quoted for the shell":  {[]string{"get", "--kubeconfig", "my config", "--context=it's"}, "gangctl list", `gangctl --kubeconfig 'my config' --context 'it'\''s' list`},
		"a value like a flag":   {[]string{"get", "--context=-x"}, "gangctl list", "gangctl --context=-x list"},
		"an empty value":        {[]string{"get", "--context="}, "gangctl list; kubectl get nodes", "gangctl --context= list; kubectl get nodes"},
		"several values":        {[]string{"get", "--as", "ann", "--as-group", "a", "--as-group", "b"}, "kubectl get nodes", "kubectl --as ann --as-group a --as-group b get nodes"},
		"yes or no":             {[]string{"get", "--insecure-skip-tls-verify"}, "kubectl get nodes", "kubectl --insecure-skip-tls-verify=true get nodes"},
		"a secret":              {[]string{"get", "--token", "s3cr3t", "--proxy-url", "http://ann:s3cr3t@proxy"}, "gangctl list", "gangctl --token REDACTED --proxy-url http://ann:xxxxx@proxy list"},
		"not of kubectl":        {[]string{"get", "--proxy-url", "http://proxy", "--profile", "p"}, "kubectl get nodes; gangctl list", "kubectl get nodes; gangctl --proxy-url http://proxy --profile p list"},
		"not about the cluster": {[]string{"get", "--request-timeout", "3s"}, "gangctl list", "gangctl list"},
		"the command's own":     {append(typed, "--kubeconfig", "k"), "gangctl get a --context other", "gangctl --kubeconfig k get a --context other"},
		"the namespace": {[]string{"get", "--namespace", "team"}, "gangctl list; gangctl list -A; gangctl get a -n b; gangctl top node; gangctl install x; kubectl get nodes",
			"gangctl -n team list; gangctl list -A; gangctl get a -n b; gangctl top node; gangctl install x; kubectl get nodes"},
		"from an administrator":    {[]string{"get", "--context", "c", "--as", "ann", "--token", "t"}, "ask an administrator to apply this: kubectl apply -f -", "ask an administrator to apply this: kubectl --context c apply -f -"},
		"a file":                   {[]string{"why-pending", "--from", "a b.yaml"}, "gangctl why-pending x, gangctl list, gangctl top node", "gangctl why-pending --from 'a b.yaml' x, gangctl list, gangctl top node --from 'a b.yaml'"},
		"standard input":           {[]string{"why-pending", "--from", "-"}, "gangctl why-pending x", "gangctl why-pending --from FILE x"},
		"a file, not for a submit": {[]string{"why-pending", "--from", "f"}, "gangctl submit x", "gangctl submit x"},
		"a file to write":          {[]string{"why-pending", "--from", "f"}, "gangctl why-pending --save FILE", "gangctl why-pending --save FILE"},
		"another cluster":          {[]string{"why-pending", "--from", "f"}, "gangctl why-pending x --context worker1", "gangctl why-pending x --context worker1"},
		"another file":             {[]string{"why-pending", "--from", "f"}, "gangctl why-pending x --from g", "gangctl why-pending x --from g"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tree(t, tt.typed...).Complete(tt.text, false); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Whoever calls gangctl as kubectl's plugin may have no other name for it.
func TestCompleteForThePlugin(t *testing.T) {
	c := tree(t, "get", "--context", "staging")
	c.root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gang"}
	const text, want = "gangctl does not know it: see `gangctl get a`, gangctl config view", "gangctl does not know it: see `kubectl gang --context staging get a`, kubectl gang config view"
	if got := c.Complete(text, false); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// kubectl does not read gangctl's settings: what they set goes to its commands, and gangctl's own need it not.
func TestCompleteFromSettings(t *testing.T) {
	c := tree(t, "get")
	if err := c.connection.Lookup("context").Value.Set("staging"); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Complete("gangctl list; kubectl get nodes", false), "gangctl list; kubectl --context staging get nodes"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What an administrator types is not typed as the user of the run.
func TestCompleteForAdministrators(t *testing.T) {
	c := tree(t, "get", "--context", "staging", "--as", "ann", "--as-group", "users")
	if got, want := c.Complete("kubectl uncordon n1", true), "kubectl --context staging uncordon n1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
