// Package kube opens the connection to one cluster: kubeconfig and its flags in, typed and dynamic clients out.
package kube

import (
	"crypto/tls"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // every way to log in that a kubeconfig may name
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Requests a second that gangctl sends at most. A command sends a handful; the client-go default of 5 would only make
// `delete a b c …` slow. The server's own fairness still applies.
const (
	clientQPS   = 50
	clientBurst = 100
)

// Client speaks to one cluster.
type Client struct {
	// Typed serves the built-in kinds, in protobuf.
	Typed kubernetes.Interface
	// Dynamic serves custom resources, in JSON.
	Dynamic dynamic.Interface
	// Config is what both are made from, for connections that are no requests: a command in a container, a forwarded port.
	Config *rest.Config
}

// Factory makes clients from a kubeconfig, the connection flags and the environment. Nothing is read before it is needed.
type Factory struct {
	flags     *connection
	userAgent string
	warnings  *warningWriter
}

// NewFactory returns a Factory whose requests carry the user agent; warnings of API servers go to warnings.
func NewFactory(userAgent string, warnings io.Writer) *Factory {
	return &Factory{flags: newConnection(), userAgent: userAgent, warnings: &warningWriter{out: warnings, printed: map[string]bool{}}}
}

// AddFlags adds kubectl's connection flags (--kubeconfig, --context, -n, --as, --request-timeout, …).
func (f *Factory) AddFlags(flags *pflag.FlagSet) { f.flags.addFlags(flags) }

// Namespace is the namespace of -n, else of the context, else "default". It needs no cluster and no kubeconfig.
func (f *Factory) Namespace() (string, error) {
	if err := f.checkFiles(); err != nil {
		return "", err
	}
	if f.flags.overrides.Context.Namespace != "" {
		if err := f.flags.checkNamespace(); err != nil {
			return "", err
		}
	}
	namespace, _, err := f.flags.loader().Namespace()
	if err != nil {
		return "", f.explainConfig(err)
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return "", failure.Errorf("kubeconfig: namespace %q of the context: %s", namespace, strings.Join(problems, "; ")).
			WithHint("correct it: kubectl config set-context --current --namespace NAME; or choose one with -n")
	}
	return namespace, nil
}

// Contexts are the names of the contexts of the kubeconfig, sorted.
func (f *Factory) Contexts() ([]string, error) {
	return names(f, func(raw clientcmdapi.Config) map[string]*clientcmdapi.Context { return raw.Contexts })
}

// Clusters are the names of the clusters of the kubeconfig, sorted.
func (f *Factory) Clusters() ([]string, error) {
	return names(f, func(raw clientcmdapi.Config) map[string]*clientcmdapi.Cluster { return raw.Clusters })
}

// Users are the names of the users of the kubeconfig, sorted.
func (f *Factory) Users() ([]string, error) {
	return names(f, func(raw clientcmdapi.Config) map[string]*clientcmdapi.AuthInfo { return raw.AuthInfos })
}

// names are the keys of one part of the kubeconfig.
func names[T any](f *Factory, part func(clientcmdapi.Config) map[string]T) ([]string, error) {
	if err := f.checkFiles(); err != nil {
		return nil, err
	}
	raw, err := f.flags.loader().RawConfig()
	if err != nil {
		return nil, f.explainConfig(err)
	}
	return slices.Sorted(maps.Keys(part(raw))), nil
}

// Client opens the connection. It sends no request: an unreachable server shows at the first one.
func (f *Factory) Client() (*Client, error) {
	config, err := f.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := NewClient(config)
	if err != nil {
		return nil, failure.Errorf("connect to %s: %w", config.Host, err).WithHint("correct the flag, or what the kubeconfig has: kubectl config view --minify")
	}
	return client, nil
}

// NewClient returns clients for a REST configuration.
func NewClient(config *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	if config.ExecProvider != nil {
		alone := *httpClient
		alone.Transport = newOneLogin(httpClient.Transport)
		httpClient = &alone
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{Typed: typed, Dynamic: dyn, Config: config}, nil
}

// checkCertificate reports a client certificate that is none, or not that of its key. client-go reports it in a log of its own, and makes its requests
// without.
func checkCertificate(c *rest.TLSClientConfig) error {
	if c.CertFile == "" || c.KeyFile == "" || len(c.CertData) > 0 || len(c.KeyData) > 0 {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
		return failure.Errorf("client certificate %s, key %s: %w", c.CertFile, c.KeyFile, err).WithHint("correct the paths, in the kubeconfig or in the flags that name them")
	}
	return nil
}

func (f *Factory) restConfig() (*rest.Config, error) {
	loader, err := f.clientConfig()
	if err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, f.explainConfig(err)
	}
	if err := checkCertificate(&config.TLSClientConfig); err != nil {
		return nil, err
	}
	config.UserAgent = f.userAgent
	config.QPS, config.Burst = clientQPS, clientBurst
	config.WarningHandlerWithContext = f.warnings
	return config, nil
}
