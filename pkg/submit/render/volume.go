package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mount adds volumes to a pod, each once, and mounts them in one container.
func mount(pod *corev1.PodSpec, c *corev1.Container, mounts []Mount) {
	for _, m := range mounts {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Volume.Name }) {
			pod.Volumes = append(pod.Volumes, m.Volume)
		}
		mounted := m.Mount
		mounted.Name = m.Volume.Name
		c.VolumeMounts = append(c.VolumeMounts, mounted)
	}
}

// Code is a Git repository that members find in a directory.
type Code struct {
	// URL and Ref are the repository and the branch, tag or commit; an empty Ref is the default branch.
	URL, Ref string
	// Image runs git-sync (https://github.com/kubernetes/git-sync), version 4.
	Image string
}

// codeRoot is where code is; codeVolume holds it.
const (
	codeRoot   = "/code"
	codeLink   = "src"
	codeVolume = "gangctl-code"
)

// CodeDir is where members find the code, and where they start unless they are told otherwise.
const CodeDir = codeRoot + "/" + codeLink

// clone lets an init container fetch the code, once, before the i-th container starts. Each start of the pod fetches anew, so a
// branch may have moved; a commit does not.
func clone(pod *corev1.PodSpec, i int, code Code) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: codeVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	args := []string{"--one-time", "--repo=" + literal(code.URL), "--root=" + codeRoot, "--link=" + codeLink, "--depth=1"}
	if code.Ref != "" {
		args = append(args, "--ref="+literal(code.Ref))
	}
	main := &pod.Containers[i]
	at := corev1.VolumeMount{Name: codeVolume, MountPath: codeRoot}
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name: "git-sync", Image: code.Image, Args: args, VolumeMounts: []corev1.VolumeMount{at}, EnvFrom: main.EnvFrom,
	})
	main.VolumeMounts = append(main.VolumeMounts, at)
	if main.WorkingDir == "" {
		main.WorkingDir = CodeDir
	}
}
