package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// container is a container as it is started as a process.
type container struct {
	args, env []string
	// ports are where the process listens, by the container's ports.
	ports map[int32]int
	spec  *corev1.Container
}

// prepare makes the files of the pod, and the command line of its container. A
// field that a process cannot have is an error: to leave it out would test
// something else.
func (p *pod) prepare(ctx context.Context) (*container, error) {
	if n := len(p.spec.Spec.Containers) + len(p.spec.Spec.InitContainers); n != 1 {
		return nil, fmt.Errorf("the sandbox runs pods of one container, this one has %d", n)
	}
	spec := &p.spec.Spec.Containers[0]
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the pod: %w", err)
	}
	kubeconfig, err := p.writeAccess(ctx)
	if err != nil {
		return nil, err
	}
	mounted := map[string]string{} // directory by path in the container
	for _, mount := range spec.VolumeMounts {
		if mount.MountPath == serviceAccountPath {
			continue // the kubeconfig stands for it
		}
		dir, err := p.volume(ctx, mount.Name, kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", mount.Name, err)
		}
		mounted[mount.MountPath] = dir
	}
	env, err := p.environment(spec)
	if err != nil {
		return nil, err
	}
	c := &container{spec: spec}
	if c.ports, err = freePorts(spec); err != nil {
		return nil, err
	}
	mapping := expansion.MappingFuncFor(env)
	// The first element of a command is the program, which is ours here.
	for _, arg := range append(slices.Clone(spec.Command[min(1, len(spec.Command)):]), spec.Args...) {
		arg = expansion.Expand(arg, mapping)
		for path, dir := range mounted {
			arg = strings.ReplaceAll(arg, path+"/", dir+"/")
		}
		c.args = append(c.args, arg)
	}
	c.args = adapt(c.args, c.ports, kubeconfig)
	c.env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + p.dir, "PATH=/usr/bin:/bin"}
	for _, e := range spec.Env {
		c.env = append(c.env, e.Name+"="+env[e.Name])
	}
	return c, nil
}

// volume makes the directory of a volume and returns it.
func (p *pod) volume(ctx context.Context, name, kubeconfig string) (string, error) {
	at := slices.IndexFunc(p.spec.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if at < 0 {
		return "", fmt.Errorf("the pod has none of that name")
	}
	dir := filepath.Join(p.dir, "volumes", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	v := p.spec.Spec.Volumes[at]
	switch {
	case v.EmptyDir != nil:
		return dir, nil
	case v.ConfigMap != nil && len(v.ConfigMap.Items) == 0:
	default:
		return "", fmt.Errorf("the sandbox mounts whole ConfigMaps and empty directories only")
	}
	m, err := p.runner.Client.CoreV1().ConfigMaps(p.spec.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get ConfigMap %s: %w", v.ConfigMap.Name, err)
	}
	for file, text := range m.Data {
		if text, err = withAccess(text, kubeconfig); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write file: %w", err)
		}
	}
	return dir, nil
}

// environment is the values of a container's variables.
func (p *pod) environment(spec *corev1.Container) (map[string]string, error) {
	fields := map[string]string{
		"metadata.name": p.spec.Name, "metadata.namespace": p.spec.Namespace, "metadata.uid": string(p.spec.UID),
		"spec.nodeName": p.spec.Spec.NodeName, "spec.serviceAccountName": p.spec.Spec.ServiceAccountName,
		"status.podIP": address, "status.hostIP": address,
	}
	env := map[string]string{}
	for _, e := range spec.Env {
		if e.ValueFrom == nil {
			env[e.Name] = expansion.Expand(e.Value, expansion.MappingFuncFor(env))
			continue
		}
		value, ok := "", false
		if e.ValueFrom.FieldRef != nil {
			value, ok = fields[e.ValueFrom.FieldRef.FieldPath]
		}
		if !ok {
			return nil, fmt.Errorf("variable %s: the sandbox does not know where it comes from", e.Name)
		}
		env[e.Name] = value
	}
	return env, nil
}
