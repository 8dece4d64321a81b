package kube

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
)

// connection holds kubectl's flags for the connection to a cluster. They are declared here rather than taken from
// k8s.io/cli-runtime: that package links kustomize, and kustomize the package plugin, with which the linker has to keep all
// that is never called. It makes the program a third larger, on disk and in memory.
type connection struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	config    clientcmd.ClientConfig
}

func newConnection() *connection {
	c := &connection{rules: clientcmd.NewDefaultClientConfigLoadingRules(), overrides: clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults}}
	c.rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	return c
}

// addFlags adds the flags, with kubectl's descriptions but for those that mean more in gangctl.
func (c *connection) addFlags(flags *pflag.FlagSet) {
	auth, cluster, context := &c.overrides.AuthInfo, &c.overrides.ClusterInfo, &c.overrides.Context
	flags.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "Path to the kubeconfig file; default is $KUBECONFIG, a list, then ~/.kube/config")
	flags.StringVar(&auth.ClientCertificate, "client-certificate", "", "Path to a client certificate file for TLS")
	flags.StringVar(&auth.ClientKey, "client-key", "", "Path to a client key file for TLS")
	flags.StringVar(&auth.Token, "token", "", "Bearer token for authentication to the API server")
	flags.StringVar(&auth.Impersonate, "as", "", "Username to impersonate for the operation. User could be a regular user or a service account in a namespace.")
	flags.StringVar(&auth.ImpersonateUID, "as-uid", "", "UID to impersonate for the operation.")
	flags.StringArrayVar(&auth.ImpersonateGroups, "as-group", nil, "Group to impersonate for the operation, this flag can be repeated to specify multiple groups.")
	flags.StringVar(&context.Cluster, "cluster", "", "The name of the kubeconfig cluster to use")
	flags.StringVar(&context.AuthInfo, "user", "", "The name of the kubeconfig user to use")
	flags.StringVarP(&context.Namespace, "namespace", "n", "", "Namespace of the job; default is the namespace of the context")
	flags.StringVar(&c.overrides.CurrentContext, "context", "", "The name of the kubeconfig context to use")
	flags.StringVarP(&cluster.Server, "server", "s", "", "The address and port of the Kubernetes API server")
	flags.StringVar(&cluster.TLSServerName, "tls-server-name", "", "Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used")
	flags.BoolVar(&cluster.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "If true, the server's certificate will not be checked for validity. This will make your HTTPS connections insecure")
	flags.StringVar(&cluster.CertificateAuthority, "certificate-authority", "", "Path to a cert file for the certificate authority")
	flags.StringVar(&cluster.ProxyURL, "proxy-url", "", "Proxy URL to use for requests to the API server")
	flagvalue.Check(flags, c.checkNamespace, "namespace")
	flags.StringVar(&c.overrides.Timeout, "request-timeout", "0", "The length of time to wait before giving up on a single server request. Non-zero values should contain a corresponding time unit (e.g. 1s, 2m, 3h). A value of zero means don't timeout requests.")
	flagvalue.Check(flags, c.checkTimeout, "request-timeout")
}

func (c *connection) checkNamespace() error {
	if problems := validation.IsDNS1123Label(c.overrides.Context.Namespace); len(problems) > 0 {
		return failure.Usagef("--namespace %q: %s", c.overrides.Context.Namespace, strings.Join(problems, "; "))
	}
	return nil
}

func (c *connection) checkTimeout() error {
	if limit, err := clientcmd.ParseTimeout(c.overrides.Timeout); err != nil || limit < 0 {
		return failure.Usagef("--request-timeout %q: must be a duration from 0 to 2562047h, such as 30s", c.overrides.Timeout) // what a time.Duration holds
	}
	return nil
}

// loader reads the kubeconfig, once, with the flags applied.
func (c *connection) loader() clientcmd.ClientConfig {
	if c.config == nil {
		c.config = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
	}
	return c.config
}
