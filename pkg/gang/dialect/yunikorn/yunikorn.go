// Package yunikorn reads gangs of Apache YuniKorn: no objects, only annotations on pods. The first pod of an application lists the task
// groups with their minimum.
package yunikorn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	prefix           = "yunikorn.apache.org/"
	groupsAnnotation = prefix + "task-groups"
	groupAnnotation  = prefix + "task-group-name"

	// placeholder is on pods that keep room for members: an annotation, and a label of older releases without the prefix.
	placeholder = "placeholder"
)

// taskGroup is one entry of the annotation that lists them.
type taskGroup struct {
	Name      string `json:"name"`
	MinMember int32  `json:"minMember"`
}

// NameOf returns the application that a pod belongs to, if the application is a gang. Placeholders are no members of it.
func NameOf(pod metav1.Object) (string, bool) {
	if isPlaceholder(pod) {
		return "", false
	}
	return application(pod)
}

// Placeholder returns the application for which a pod keeps room, until a member of it takes its place; ok is false for a pod that keeps none.
func Placeholder(pod metav1.Object) (name string, ok bool) {
	if !isPlaceholder(pod) {
		return "", false
	}
	return application(pod)
}

// TaskGroup is the task group, in lower case, that a pod or a template is of; empty for none.
func TaskGroup(pod metav1.Object) string {
	return strings.ToLower(pod.GetAnnotations()[groupAnnotation])
}

// QueueOf is the queue that a pod names; empty for none, as where rules of YuniKorn choose it.
func QueueOf(pod metav1.Object) string {
	labels := pod.GetLabels()
	return cmp.Or(labels[prefix+"queue"], pod.GetAnnotations()[prefix+"queue"], labels["queue"])
}

// Skipped is the reason of the condition of a pod that YuniKorn does not try, as its queue is full.
const Skipped = "SchedulingSkipped"

// Refusals are the words by which an event of the reason Informational is one that YuniKorn does not place a pod: for its queue, a user's limit, or any other reason.
func Refusals() []string {
	return []string{"does not fit in queue", "exceeds the available user quota", "Unschedulable request"}
}

// amounts is how YuniKorn writes what a request has and a queue is left: map[memory:8589934592 nvidia.com/gpu:8 vcore:4000].
var amounts = regexp.MustCompile(`map\[([^\[\]]*)\]`)

// Readable is a report of YuniKorn with the amounts in it written in another way.
func Readable(message string, write func(corev1.ResourceList) string) string {
	return amounts.ReplaceAllStringFunc(message, func(found string) string {
		list := corev1.ResourceList{}
		for _, field := range strings.Fields(strings.TrimSuffix(strings.TrimPrefix(found, "map["), "]")) {
			at := strings.LastIndexByte(field, ':')
			n, err := strconv.ParseInt(field[at+1:], 10, 64)
			if at < 0 || err != nil {
				return found
			}
			switch name := corev1.ResourceName(field[:at]); name {
			case vcore:
				list[corev1.ResourceCPU] = *resource.NewMilliQuantity(n, resource.DecimalSI)
			case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
				list[name] = *resource.NewQuantity(n, resource.BinarySI)
			default:
				list[name] = *resource.NewQuantity(n, resource.DecimalSI)
			}
		}
		return write(list)
	})
}

// vcore is what YuniKorn calls cpu, of which it counts thousandths.
const vcore corev1.ResourceName = "vcore"

func isPlaceholder(pod metav1.Object) bool {
	return pod.GetAnnotations()[prefix+placeholder] == "true" || pod.GetLabels()[placeholder] == "true"
}

func application(pod metav1.Object) (string, bool) {
	labels, notes := pod.GetLabels(), pod.GetAnnotations()
	if notes[groupAnnotation] == "" && notes[groupsAnnotation] == "" {
		return "", false
	}
	name := cmp.Or(labels[prefix+"app-id"], labels["spark-app-selector"], labels["applicationId"], notes[prefix+"app-id"])
	return name, name != ""
}

// SchedulerName is that of YuniKorn.
const SchedulerName = "yunikorn"

// Reader reads this dialect. The gang's minimum is the sum over its task groups.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.YuniKorn, Schedulers: []string{SchedulerName}, NameOf: NameOf,
		FromPods: func(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
			d := gang.Declaration{Key: key, MinMember: 1}
			for _, pod := range pods {
				d.Queue = cmp.Or(d.Queue, QueueOf(pod))
				text := pod.Annotations[groupsAnnotation]
				if text == "" {
					continue
				}
				var groups []taskGroup
				if err := json.Unmarshal([]byte(text), &groups); err != nil {
					return d, fmt.Errorf("pod %s/%s: annotation %s: %w", pod.Namespace, pod.Name, groupsAnnotation, err)
				}
				d.MinMember, d.RoleMin = 0, map[string]int32{}
				for _, g := range groups {
					d.MinMember = gang.Sum(d.MinMember, g.MinMember)
					d.RoleMin[g.Name] = g.MinMember
				}
				d.MinMember = max(1, d.MinMember)
			}
			return d, nil
		},
		SetMinimum: setMinimum,
	}
}

// setMinimum changes the sizes in the list of task groups: a group that was as large as its role stays so.
func setMinimum(template *metav1.ObjectMeta, _ int32, before, after []gang.Role) {
	text, stated := template.Annotations[groupsAnnotation]
	if !stated {
		return
	}
	var groups []map[string]any // with what else they have
	if err := json.Unmarshal([]byte(text), &groups); err != nil {
		return // they were not read before either
	}
	for _, group := range groups {
		for i, role := range after {
			if role.Template.Annotations[groupAnnotation] == group["name"] && group["minMember"] == float64(before[i].Replicas) {
				group["minMember"] = role.Replicas
			}
		}
	}
	if out, err := json.Marshal(groups); err == nil {
		template.Annotations[groupsAnnotation] = string(out)
	}
}
