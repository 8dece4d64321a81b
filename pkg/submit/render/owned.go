package render

import (
	"strconv"
	"unicode/utf8"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// apply writes the limits of a job where operators look for them; what is nil stays as the preset has it.
func (l Lifetime) apply(policy *kubeflowv1.RunPolicy) {
	if l.Retries != nil {
		policy.BackoffLimit = l.Retries
	}
	if l.Limit != nil {
		policy.ActiveDeadlineSeconds = l.Limit
	}
	if l.TTL != nil {
		policy.TTLSecondsAfterFinished = l.TTL
	}
}

// FilesName is the name of the ConfigMap that holds a job's files.
func FilesName(job string) string { return job + "-files" }

// TensorBoardName is the name of the Deployment and the Service that show a job's logs.
func TensorBoardName(job string) string { return job + "-tensorboard" }

// TensorBoard is where members write what TensorBoard shows.
type TensorBoard struct {
	// LogDir is a path in a mounted volume, or the URL of a store that TensorBoard reads.
	LogDir string
	Image  string
}

// tensorBoardPort is TensorBoard's own.
const tensorBoardPort = 6006

// extras are the objects of a spec that no kind needs: they go when the job goes.
func extras(s Spec) ([]*unstructured.Unstructured, error) {
	var all []runtime.Object
	if len(s.Files) > 0 {
		all = append(all, files(s))
	}
	if s.TensorBoard != nil {
		all = append(all, tensorBoard(s)...)
	}
	var out []*unstructured.Unstructured
	for _, obj := range all {
		u, err := Unstructured(obj)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// files is the ConfigMap of the job's files. What is no text goes in as it is, too.
func files(s Spec) *corev1.ConfigMap {
	m := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: FilesName(s.Name), Namespace: s.Namespace, Labels: s.Labels}}
	for key, content := range s.Files {
		if utf8.Valid(content) {
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			m.Data[key] = string(content)
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string][]byte{}
		}
		m.BinaryData[key] = content
	}
	return m
}

// tensorBoard is one pod that shows the logs, and a name for it. It has the volumes of the members, and requests little: it must
// not keep the gang from starting, so no scheduler of gangs places it, and it has no GPU.
func tensorBoard(s Spec) []runtime.Object {
	name := TensorBoardName(s.Name)
	selector := map[string]string{"app.kubernetes.io/name": "tensorboard", "app.kubernetes.io/instance": s.Name}
	meta := metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: selector}
	c := corev1.Container{
		Name: "tensorboard", Image: s.TensorBoard.Image, ImagePullPolicy: s.Pod.PullPolicy,
		Command: []string{"tensorboard", "--logdir=" + Literal(s.TensorBoard.LogDir), "--bind_all", "--port=" + strconv.Itoa(tensorBoardPort)},
		EnvFrom: s.Pod.EnvFrom,
		Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: tensorBoardPort}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("512Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{c}, NodeSelector: s.Pod.Placement.NodeSelector, Tolerations: s.Pod.Placement.Tolerations,
	}}
	rest := s
	rest.Pod.HostNetwork = false
	fillRest(&template, rest)
	mount(&template.Spec, &template.Spec.Containers[0], s.Pod.Mounts)
	one := int32(1)
	deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: template}}
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Name: "http", Port: tensorBoardPort, TargetPort: intstr.FromString("http")}}}}
	return []runtime.Object{deployment, service}
}
