package credential

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/datadir"
)

// Context is the name of the context, cluster and user in kubeconfigs.
const Context = "gangctl-sandbox"

// Server is the API server's URL.
func Server(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }

// Kubeconfig returns a kubeconfig for a user, complete in itself.
func (s *Set) Kubeconfig(user string, port int) ([]byte, error) {
	ca, err := os.ReadFile(CA(s.dir))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters[Context] = &clientcmdapi.Cluster{Server: Server(port), CertificateAuthorityData: ca}
	c.AuthInfos[Context] = &clientcmdapi.AuthInfo{Token: s.Token(user)}
	c.Contexts[Context] = &clientcmdapi.Context{Cluster: Context, AuthInfo: Context, Namespace: "default"}
	c.CurrentContext = Context
	data, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return data, nil
}

// ComponentKubeconfig is where a component finds its kubeconfig.
func ComponentKubeconfig(dir datadir.Dir, user string) string {
	return dir.Path("pki", user+".kubeconfig")
}

// WriteKubeconfigs writes one for each component, and the administrator's to
// path. A file there that gives the same access stays as it is: its user may have
// chosen another namespace in it.
func (s *Set) WriteKubeconfigs(path string, port int) error {
	for _, u := range Users() {
		data, err := s.Kubeconfig(u.Key, port)
		if err != nil {
			return err
		}
		if err := s.dir.WriteFile("pki/"+u.Key+".kubeconfig", data); err != nil {
			return err
		}
		if u.Key != Admin || SameAccess(path, data) {
			continue
		}
		if err := datadir.Replace(path, data); err != nil {
			return err
		}
	}
	return nil
}

// AdminConfig is a client configuration with all rights and no throttling.
func (s *Set) AdminConfig(port int) *rest.Config {
	return &rest.Config{
		Host:            Server(port),
		BearerToken:     s.Token(Admin),
		TLSClientConfig: rest.TLSClientConfig{CAFile: CA(s.dir)},
		QPS:             -1,
		UserAgent:       "gangctl-sandbox",
	}
}

// LoadAdmin is the administrator's client configuration of a running sandbox.
func LoadAdmin(dir datadir.Dir) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", ComponentKubeconfig(dir, Admin))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "gangctl-sandbox"
	return config, nil
}

// SameAccess reports whether the file at path is a sandbox's kubeconfig, and only
// that, with the server, certificate authority and token of want.
func SameAccess(path string, want []byte) bool {
	have, err := clientcmd.LoadFromFile(path)
	if err != nil || !own(have) {
		return false
	}
	desired, err := clientcmd.Load(want)
	if err != nil || !own(desired) {
		return false
	}
	a, b := have.Clusters[Context], desired.Clusters[Context]
	return a.Server == b.Server && bytes.Equal(a.CertificateAuthorityData, b.CertificateAuthorityData) &&
		have.AuthInfos[Context].Token == desired.AuthInfos[Context].Token
}

// own reports whether a kubeconfig holds a sandbox and nothing else.
func own(c *clientcmdapi.Config) bool {
	return len(c.Contexts) == 1 && c.Contexts[Context] != nil &&
		len(c.Clusters) == 1 && c.Clusters[Context] != nil &&
		len(c.AuthInfos) == 1 && c.AuthInfos[Context] != nil
}

// RequireOwnFile refuses to write a kubeconfig over a file that holds anything
// but an earlier one of a sandbox: a user's own is not ours to replace.
func RequireOwnFile(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	c, err := clientcmd.LoadFromFile(path)
	if err == nil && own(c) {
		return nil
	}
	return failure.Errorf("the kubeconfig %s holds other things than a sandbox", path).
		WithHint("choose a file of its own with --kubeconfig, and name both in KUBECONFIG: KUBECONFIG=%s:FILE", path)
}
