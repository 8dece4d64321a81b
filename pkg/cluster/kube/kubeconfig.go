package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
)

// clientConfig is the configuration that applies: that of the kubeconfig and flags, or in a pod, for a user without a kubeconfig, that of its service
// account and flags. It fails if nothing configures where the cluster is: client-go would silently try localhost:8080. That takes the service account
// only where no flag changes anything, and takes over none of the flags.
func (f *Factory) clientConfig() (clientcmd.ClientConfig, error) {
	if err := errors.Join(f.flags.checkTimeout(), f.checkFiles()); err != nil {
		return nil, err
	}
	loader, flags := f.flags.loader(), &f.flags.overrides
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, f.explainConfig(err)
	}
	chosen := cmp.Or(flags.CurrentContext, flags.Context.Cluster, raw.CurrentContext) != ""
	if flags.ClusterInfo.Server != "" || chosen && len(raw.Clusters) > 0 {
		return loader, nil
	}
	account, err := rest.InClusterConfig()
	switch {
	case err == nil && len(raw.Clusters) == 0:
		return clientcmd.NewDefaultClientConfig(*ofAccount(account), flags), nil
	case !errors.Is(err, rest.ErrNotInCluster):
		return loader, nil // it uses the service account, or reports what is wrong with that
	case !chosen && len(raw.Contexts) > 0:
		return nil, failure.Errorf("kubeconfig %s: no context is chosen", strings.Join(f.paths(), ", ")).
			WithHint("choose one with --context: %s", strings.Join(contextNames(raw), ", "))
	}
	return nil, f.noKubeconfig()
}

// maxFile is how large a kubeconfig, a certificate or a key may be, in bytes.
const maxFile = 16 << 20

// checkFiles reports a file of the connection that is too large, or has no end: client-go would read it until memory is full.
func (f *Factory) checkFiles() error {
	auth, cluster := &f.flags.overrides.AuthInfo, &f.flags.overrides.ClusterInfo
	for _, path := range append(slices.Clone(f.paths()), auth.ClientCertificate, auth.ClientKey, cluster.CertificateAuthority) {
		if info, err := os.Stat(path); err != nil || info.Mode().Type()&^(fs.ModeDevice|fs.ModeCharDevice) != 0 {
			continue // client-go reports what is wrong with it; a pipe can be read once
		}
		in, err := localfile.Open(path, nil)
		if err != nil {
			continue
		}
		_, err = localfile.Bytes(in, maxFile)
		if err := errors.Join(err, in.Close()); err != nil {
			return failure.Errorf("read %s: %w", path, err).WithHint("correct the path, in KUBECONFIG or in the flag that names it")
		}
	}
	return nil
}

// ofAccount is a kubeconfig of the service account of a pod.
func ofAccount(account *rest.Config) *clientcmdapi.Config {
	const name = "pod"
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: account.Host, CertificateAuthority: account.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {TokenFile: account.BearerTokenFile}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

// newCluster is the hint for a user without a kubeconfig.
const newCluster = "name a kubeconfig with --kubeconfig or KUBECONFIG, or start a local cluster: gangctl-sandbox up"

func (f *Factory) noKubeconfig() error {
	return failure.Errorf("no cluster is configured: tried %s", strings.Join(f.paths(), ", ")).WithHint(newCluster)
}

// paths are the kubeconfig files that apply, in the order they are read.
func (f *Factory) paths() []string {
	if f.flags.rules.ExplicitPath != "" {
		return []string{f.flags.rules.ExplicitPath}
	}
	return f.flags.loader().ConfigAccess().GetLoadingPrecedence()
}

func (f *Factory) explainConfig(err error) error {
	where := strings.Join(f.paths(), ", ")
	switch {
	case strings.Contains(err.Error(), "Invalid timeout value"): // clientcmd has no type for it
		return f.flags.checkTimeout()
	case strings.Contains(err.Error(), "without impersonating a user"):
		return failure.Usagef("--as-uid and --as-group need --as: they are those of the user that it names").WithHint("add --as USER, or leave them out")
	case f.flags.overrides.Context.Cluster != "" && strings.Contains(err.Error(), "no server found for cluster"):
		return f.noCluster(where)
	case f.aboutAnother(err):
		return failure.Errorf("kubeconfig %s: %w", where, err).WithHint("correct the path, in the kubeconfig or in the flag that names it")
	case errors.Is(err, fs.ErrNotExist):
		return failure.Errorf("kubeconfig %s does not exist", where).WithHint(newCluster)
	case errors.Is(err, fs.ErrPermission):
		return failure.Errorf("kubeconfig %s: permission denied", where).WithHint(newCluster)
	case clientcmd.IsContextNotFound(err), strings.Contains(err.Error(), "does not exist"):
		return f.noContext(where, err)
	default: // the error names the file, if it is about one
		return failure.Errorf("kubeconfig: %w", err).WithHint("see how it is read: kubectl config view")
	}
}

// aboutAnother reports whether an error is about a file that is no kubeconfig: a certificate, a key or a token that one names, or a flag.
func (f *Factory) aboutAnother(err error) bool {
	var several utilerrors.Aggregate // which errors.As does not look into
	if errors.As(err, &several) {
		return slices.ContainsFunc(several.Errors(), f.aboutAnother)
	}
	var of *fs.PathError
	return errors.As(err, &of) && !slices.Contains(f.paths(), of.Path)
}

// noCluster explains a --cluster that the kubeconfig does not hold.
func (f *Factory) noCluster(where string) error {
	clusters, err := f.Clusters()
	if err != nil {
		return err
	}
	return failure.Errorf("kubeconfig %s: cluster %q does not exist, or has no server", where, f.flags.overrides.Context.Cluster).
		WithHint("choose one with --cluster: %s", strings.Join(clusters, ", "))
}

// noContext explains a context, cluster or user that the kubeconfig does not hold.
func (f *Factory) noContext(where string, err error) error {
	raw, rawErr := f.flags.loader().RawConfig()
	if rawErr != nil || len(raw.Contexts) == 0 {
		return f.noKubeconfig()
	}
	hint := "choose one with --context: " + strings.Join(contextNames(raw), ", ")
	name := cmp.Or(f.flags.overrides.CurrentContext, raw.CurrentContext)
	if _, ok := raw.Contexts[name]; !ok {
		return failure.Errorf("kubeconfig %s: context %q does not exist", where, name).WithHint("%s", hint)
	}
	if user := f.flags.overrides.Context.AuthInfo; user != "" && raw.AuthInfos[user] == nil {
		return failure.Errorf("kubeconfig %s: user %q does not exist", where, user).WithHint("choose one with --user: %s", strings.Join(slices.Sorted(maps.Keys(raw.AuthInfos)), ", "))
	}
	return failure.Errorf("kubeconfig %s: %w", where, err).WithHint("%s", hint)
}

func contextNames(raw clientcmdapi.Config) []string {
	names := make([]string, 0, len(raw.Contexts))
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// warningWriter prints the Warning headers of API servers (RFC 7234, code 299) as lines of gangctl. That a version of an API
// is deprecated is not for the user to hear: gangctl chose it. A text is printed once: what is tried by a dry run first is warned of twice.
type warningWriter struct {
	out     io.Writer
	mu      sync.Mutex
	printed map[string]bool
}

// maxPrinted is how many texts are remembered: a policy may put anything into them.
const maxPrinted = 100

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warningWriter) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != 299 || text == "" || strings.Contains(text, " is deprecated in v") || w.printed[text] {
		return
	}
	if len(w.printed) < maxPrinted {
		w.printed[text] = true
	}
	fmt.Fprintf(w.out, "warning: the API server reports: %s\n", text)
}
