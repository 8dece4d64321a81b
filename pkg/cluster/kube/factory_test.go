package kube

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: c
  cluster: {server: "SERVER"}
users:
- name: ann
  user: {token: secret}
contexts:
- name: dev
  context: {cluster: c, user: ann, namespace: research}
- name: prod
  context: {cluster: c, user: nobody}
`

// newFactory parses args against a kubeconfig, in an environment that names no other.
func newFactory(t *testing.T, config string, args ...string) (*Factory, *bytes.Buffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if config != "" {
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	warnings := &bytes.Buffer{}
	f := NewFactory("gangctl/v1.2.3", warnings)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f, warnings
}

func TestNamespace(t *testing.T) {
	tests := []struct {
		config, want string
		args         []string
	}{
		{config: kubeconfig, want: "research"},
		{config: kubeconfig, args: []string{"-n", "ml"}, want: "ml"},
		{config: kubeconfig, args: []string{"--context", "prod"}, want: "default"},
		{want: "default"},
	}
	for _, tt := range tests {
		f, _ := newFactory(t, tt.config, tt.args...)
		if got, err := f.Namespace(); err != nil || got != tt.want {
			t.Errorf("%q: got %q, %v; want %q", tt.args, got, err, tt.want)
		}
	}
}

// The namespace of a context is no other than one that is typed.
func TestNamespaceOfTheContext(t *testing.T) {
	f, _ := newFactory(t, strings.Replace(kubeconfig, "namespace: research", "namespace: Foo_Bar", 1))
	if got, err := f.Namespace(); err == nil || !strings.HasPrefix(err.Error(), `kubeconfig: namespace "Foo_Bar" of the context: `) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNoCluster(t *testing.T) {
	tests := []struct {
		name, config  string
		args          []string
		message, hint string
	}{
		{"nothing", "", nil, "no cluster is configured: tried FILE", "gangctl-sandbox up"},
		{"nothing, and a context", "", []string{"--context", "dev"}, "no cluster is configured: tried FILE", "gangctl-sandbox up"},
		{"timeout", kubeconfig, []string{"--request-timeout", "abc"}, `--request-timeout "abc": must be a duration from 0 to 2562047h, such as 30s`, ""},
		{"timeout before it began", kubeconfig, []string{"--request-timeout=-1s"}, `--request-timeout "-1s": must be a duration from 0 to 2562047h, such as 30s`, ""},
		{"no such file", kubeconfig, []string{"--kubeconfig", "/nowhere"}, "kubeconfig /nowhere does not exist", "gangctl-sandbox up"},
		{"no namespace", kubeconfig, []string{"-n", "a b"}, `--namespace "a b": ` + validation.IsDNS1123Label("a b")[0], ""},
		{"no end", kubeconfig, []string{"--kubeconfig", "/dev/zero"}, "read /dev/zero: it has more than 16 MiB", "correct the path"},
		{"a key without end", kubeconfig, []string{"--client-key", "/dev/zero"}, "read /dev/zero: it has more than 16 MiB", "correct the path"},
		{"empty", kubeconfig, []string{"--kubeconfig", "/dev/null"}, "no cluster is configured: tried /dev/null", "gangctl-sandbox up"},
		{"no such cluster", kubeconfig, []string{"--cluster", "test"}, `kubeconfig FILE: cluster "test" does not exist, or has no server`, "choose one with --cluster: c"},
		{"groups of nobody", kubeconfig, []string{"--as-group", "g"}, "--as-uid and --as-group need --as: they are those of the user that it names", "add --as USER"},
		{"no such context", kubeconfig, []string{"--context", "test"}, `kubeconfig FILE: context "test" does not exist`, "choose one with --context: dev, prod"},
		{"no such current context", strings.Replace(kubeconfig, "current-context: dev", "current-context: x", 1), nil,
			`kubeconfig FILE: context "x" does not exist`, "choose one with --context: dev, prod"},
		{"no such user", kubeconfig, []string{"--user", "bob"}, `kubeconfig FILE: user "bob" does not exist`, "choose one with --user: "},
		{"broken", "clusters: {", nil, `kubeconfig: error loading config file "FILE": yaml: line 1: did not find expected node content`, "kubectl config view"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := newFactory(t, tt.config, tt.args...)
			_, err := f.Namespace()
			if err == nil {
				_, err = f.Client()
			}
			got := failure.From(err)
			if got == nil || strings.ReplaceAll(got.Message, os.Getenv("KUBECONFIG"), "FILE") != tt.message || !strings.Contains(got.Hint, tt.hint) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// What goes over the wire: who requests, as whom, and that pods come in protobuf.
func TestRequests(t *testing.T) {
	var got http.Header
	// client-go sends credentials over TLS only.
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Warning", `299 - "v1 is old"`)
		w.Header().Add("Warning", `299 - "scheduling.k8s.io/v1beta1 PodGroup is deprecated in v1.40+, unavailable in v1.43+"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"kind": "PodList", "apiVersion": "v1", "items": []}`)
	}))
	defer server.Close()
	f, warnings := newFactory(t, strings.Replace(kubeconfig, "SERVER", server.URL, 1), "--insecure-skip-tls-verify", "--as", "bob", "--as-group", "team")
	client, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same warning, which is printed once
		if _, err := client.Typed.CoreV1().Pods("x").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"User-Agent": "gangctl/v1.2.3", "Authorization": "Bearer secret", "Impersonate-User": "bob", "Impersonate-Group": "team",
		"Accept": "application/vnd.kubernetes.protobuf,application/json"}
	for key, value := range want {
		if got.Get(key) != value {
			t.Errorf("%s: got %q, want %q", key, got.Get(key), value)
		}
	}
	if warnings.String() != "warning: the API server reports: v1 is old\n" {
		t.Errorf("warnings: %q", warnings)
	}
}

// In a pod the flags change how its service account is used, and not that it is.
func TestServiceAccount(t *testing.T) {
	f, _ := newFactory(t, "", "--as=bob", "--request-timeout=30s", "--insecure-skip-tls-verify", "--tls-server-name=api")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*ofAccount(&rest.Config{Host: "https://10.0.0.1:443", BearerTokenFile: token}), &f.flags.overrides).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://10.0.0.1:443" || config.BearerTokenFile != token || config.Impersonate.UserName != "bob" || config.Timeout != 30*time.Second || !config.Insecure || config.ServerName != "api" {
		t.Errorf("%s, %q, %+v, %s, %+v", config.Host, config.BearerTokenFile, config.Impersonate, config.Timeout, config.TLSClientConfig)
	}
}

// Without a context there is no cluster: client-go would try localhost:8080.
func TestNoContext(t *testing.T) {
	without := strings.Replace(kubeconfig, "current-context: dev\n", "", 1)
	f, _ := newFactory(t, without)
	_, err := f.Client()
	if got := failure.From(err); err == nil || !strings.HasSuffix(got.Message, "no context is chosen") || got.Hint != "choose one with --context: dev, prod" {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"--context=dev"}, {"--server=https://10.0.0.1"}, {"--cluster=c"}} {
		f, _ := newFactory(t, without, args...)
		if config, err := f.restConfig(); err != nil || strings.Contains(config.Host, "localhost") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A file that holds no certificate, or an address that is none, is an error with what to correct, and nothing is sent without.
func TestNoUsableConnection(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"client certificate " + text + ", key " + text + ": tls: ":             {"--client-certificate", text, "--client-key", text, "--server=https://10.0.0.1"},
		"connect to https://10.0.0.1: unable to load root certificates: ":      {"--certificate-authority", text, "--server=https://10.0.0.1"},
		`connect to http://x y: host must be a URL or a host:port pair: "http`: {"--server=http://x y"},
	} {
		f, _ := newFactory(t, kubeconfig, args...)
		_, err := f.Client()
		if got := failure.From(err); err == nil || !strings.HasPrefix(got.Message, want) || !strings.HasPrefix(got.Hint, "correct the ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// A certificate that is missing is not the kubeconfig that names it.
func TestNoCertificate(t *testing.T) {
	for _, args := range [][]string{
		{"--certificate-authority=/nope/ca.crt", "--server=https://10.0.0.1"},
		{"--client-certificate=/nope/ca.crt", "--client-key=/nope/ca.crt", "--server=https://10.0.0.1", "--insecure-skip-tls-verify"},
	} {
		f, _ := newFactory(t, kubeconfig, args...)
		_, err := f.Client()
		if got := failure.From(err); err == nil || !strings.Contains(got.Message, "open /nope/ca.crt: no such file or directory") || strings.Contains(got.Hint, "gangctl-sandbox") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
