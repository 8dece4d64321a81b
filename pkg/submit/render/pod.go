package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// fillPod merges what a role specifies into the pod template that the preset has for it: everything that goes into a pod,
// whatever the kind of the job, goes in here. main is the container that does the work; if the preset has none of that name,
// it is an error, else it is returned. The group reference is not set here.
func fillPod(template *corev1.PodTemplateSpec, main string, role Role, s Spec) (*corev1.Container, error) {
	decorate(&template.ObjectMeta, s)
	pod := &template.Spec
	pod.SchedulerName = s.Pod.Scheduler
	if s.Pod.PriorityClass != "" {
		pod.PriorityClassName = s.Pod.PriorityClass
	}
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == main })
	if i < 0 {
		return nil, fmt.Errorf("preset: role %s has no container named %s", role.Name, main)
	}
	fillContainer(&pod.Containers[i], role, s)
	fillRest(template, s)
	mount(pod, &pod.Containers[i], s.Pod.Mounts)
	if s.Pod.Code != nil {
		clone(pod, i, *s.Pod.Code)
	}
	applyPlacement(template, s)
	return &pod.Containers[i], nil
}

// fillRest merges what belongs to no container into a pod.
func fillRest(template *corev1.PodTemplateSpec, s Spec) {
	pod := &template.Spec
	for _, name := range s.Pod.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if s.Pod.ServiceAccount != "" {
		pod.ServiceAccountName = s.Pod.ServiceAccount
	}
	if s.Pod.HostNetwork {
		pod.HostNetwork = true
		pod.DNSPolicy = corev1.DNSClusterFirstWithHostNet // or members would not find each other by name
	}
}

// fillContainer merges the spec into the container that does the work.
func fillContainer(c *corev1.Container, role Role, s Spec) {
	if role.Image != "" {
		c.Image = role.Image
	}
	if s.Pod.PullPolicy != "" {
		c.ImagePullPolicy = s.Pod.PullPolicy
	}
	if s.Pod.WorkingDir != "" {
		c.WorkingDir = s.Pod.WorkingDir
	}
	if len(s.Pod.Command) > 0 { // in place of all that the preset has
		c.Command, c.Args = nil, nil
	}
	for _, arg := range s.Pod.Command {
		c.Command = append(c.Command, Literal(arg))
	}
	for _, env := range s.Pod.Env {
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == env.Name })
		c.Env = append(c.Env, corev1.EnvVar{Name: env.Name, Value: Literal(env.Value)})
	}
	c.EnvFrom = append(c.EnvFrom, s.Pod.EnvFrom...)
	if role.LockMemory {
		lockMemory(c)
	}
	c.Resources = resources(c.Resources, role, s.Pod.GPUResource)
}

// decorate adds the labels and annotations of the command line to those of the preset.
func decorate(meta *metav1.ObjectMeta, s Spec) {
	for key, value := range s.Labels {
		metav1.SetMetaDataLabel(meta, key, value)
	}
	for key, value := range s.Annotations {
		metav1.SetMetaDataAnnotation(meta, key, value)
	}
}

// lockMemory adds the capability to those that the preset has.
func lockMemory(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	if c.SecurityContext.Capabilities == nil {
		c.SecurityContext.Capabilities = &corev1.Capabilities{}
	}
	add := &c.SecurityContext.Capabilities.Add
	if !slices.Contains(*add, "IPC_LOCK") {
		*add = append(*add, "IPC_LOCK")
	}
}

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

// CodeDir is where members find the code, and where they start unless --working-dir is set.
const CodeDir = codeRoot + "/" + codeLink

// clone lets an init container fetch the code, once, before the i-th container starts. Each start of the pod fetches again, so a
// branch may have moved; a commit does not.
func clone(pod *corev1.PodSpec, i int, code Code) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: codeVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	args := []string{"--one-time", "--repo=" + Literal(code.URL), "--root=" + codeRoot, "--link=" + codeLink, "--depth=1"}
	if code.Ref != "" {
		args = append(args, "--ref="+Literal(code.Ref))
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

// MemberLabel is on the pods of jobs whose members attract or repel each other: it names the job, in every kind alike.
const MemberLabel = "gangctl.dev/job"

// AffinityPolicy is whether members attract or repel each other.
type AffinityPolicy string

// The policies.
const (
	// Spread puts as few members as possible into one domain.
	Spread AffinityPolicy = "spread"
	// Pack puts as many as possible into one.
	Pack AffinityPolicy = "pack"
)

// Placement is where members may run.
type Placement struct {
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Nodes are requirements on the labels of nodes, all of which must hold.
	Nodes []corev1.NodeSelectorRequirement
	// Affinity is how members stand to each other; empty for neither. Domain is the node label whose values are the domains.
	Affinity AffinityPolicy
	Domain   string
	// Required makes the affinity a requirement; it is a preference otherwise.
	Required bool
}

// preferenceWeight is that of the only preference.
const preferenceWeight = 100

// applyPlacement sets where the pods of a template may run.
func applyPlacement(template *corev1.PodTemplateSpec, s Spec) {
	pod, place := &template.Spec, s.Pod.Placement
	if len(place.NodeSelector) > 0 && pod.NodeSelector == nil {
		pod.NodeSelector = map[string]string{}
	}
	maps.Copy(pod.NodeSelector, place.NodeSelector)
	pod.Tolerations = append(pod.Tolerations, place.Tolerations...)
	if len(place.Nodes) > 0 {
		pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: place.Nodes}},
		}}}
	}
	preferred := gang.Topology{Preferred: s.Gang.Topology.Preferred}
	for key, value := range preferred.Annotations() {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, key, value)
	}
	together := s.Gang.Topology.Required
	if s.Gang.Dialect == gang.Native {
		together = "" // its PodGroup has it
	}
	if place.Affinity == "" && together == "" {
		return
	}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	metav1.SetMetaDataLabel(&template.ObjectMeta, MemberLabel, s.Name)
	term := func(key string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{MemberLabel: s.Name}}}
	}
	if together != "" {
		pod.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(together)}}
	}
	switch preference := (corev1.WeightedPodAffinityTerm{Weight: preferenceWeight, PodAffinityTerm: term(place.Domain)}); place.Affinity {
	case Spread:
		anti := &corev1.PodAntiAffinity{}
		if pod.Affinity.PodAntiAffinity = anti; place.Required {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{preference.PodAffinityTerm}
		} else {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{preference}
		}
	case Pack:
		if pod.Affinity.PodAffinity == nil {
			pod.Affinity.PodAffinity = &corev1.PodAffinity{}
		}
		if a := pod.Affinity.PodAffinity; place.Required {
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, preference.PodAffinityTerm)
		} else {
			a.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{preference}
		}
	}
}

// Literal protects a string from the kubelet, which replaces $(NAME) and $$ in the command and the environment of a
// container: a "$" that starts either is doubled, and the program sees exactly the bytes that were typed.
func Literal(s string) string {
	if !strings.Contains(s, "$$") && !strings.Contains(s, "$(") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '(') {
			b.WriteByte('$')
		}
	}
	return b.String()
}
