package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// serviceAccountPath is where a container finds its token. A process has no file
// system of its own, so that it gets a kubeconfig instead.
const serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// tokenSeconds is how long a token is good for: longer than any sandbox. It ends
// with the pod.
const tokenSeconds = 365 * 24 * 60 * 60

// writeAccess requests a token of the pod's service account, bound to the pod,
// and returns the path of a kubeconfig with it.
func (p *pod) writeAccess(ctx context.Context) (string, error) {
	account := p.spec.Spec.ServiceAccountName
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenSeconds)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.spec.Name, UID: p.spec.UID},
	}}
	answer, err := p.runner.Client.CoreV1().ServiceAccounts(p.spec.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of ServiceAccount %s/%s: %w", p.spec.Namespace, account, err)
	}
	const name = "sandbox"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: p.runner.Server, CertificateAuthority: p.runner.CA}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: answer.Status.Token}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: p.spec.Namespace}
	c.CurrentContext = name
	path := filepath.Join(p.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, os.Chmod(path, 0o600)
}

// withAccess puts a kubeconfig into a scheduler's configuration: in a pod the
// scheduler would find the API server by itself. Every other file stays as it
// is.
func withAccess(text, kubeconfig string) (string, error) {
	if !strings.Contains(text, "kind: KubeSchedulerConfiguration") {
		return text, nil
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return "", fmt.Errorf("read scheduler configuration: %w", err)
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	config["clientConnection"] = connection
	data, err := yaml.Marshal(config)
	return string(data), err
}

// adapt gives a scheduler the flags for what its pod would have: the API server
// that authenticates and authorizes its clients, and its own address and port.
func adapt(args []string, ports map[int32]int, kubeconfig string) []string {
	if len(args) == 0 || args[0] != "scheduler" {
		return args
	}
	for i, arg := range args {
		text, found := strings.CutPrefix(arg, "--secure-port=")
		if port, err := strconv.ParseInt(text, 10, 32); found && err == nil && ports[int32(port)] != 0 {
			args[i] = "--secure-port=" + strconv.Itoa(ports[int32(port)])
		}
	}
	return append(args, "--bind-address="+address, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
}

// freePorts picks a port of this machine for each of the container's.
func freePorts(spec *corev1.Container) (ports map[int32]int, err error) {
	ports = map[int32]int{}
	for _, port := range spec.Ports {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			return nil, fmt.Errorf("find a free port for %d: %w", port.ContainerPort, err)
		}
		defer func() { err = errors.Join(err, l.Close()) }() // not before all are picked: each is another one
		ports[port.ContainerPort] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
