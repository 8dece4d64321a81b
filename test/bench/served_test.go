package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

// served is an API server without a control plane: it answers lists and watches of a planned cluster, encoded once. A list whose
// resource version is 0 comes as one page whatever its limit, as from the watch cache of an API server; any other comes in pages.
type served struct {
	kubeconfig string
	mux        *http.ServeMux
	lists      map[string]servedList // by path
	subject    *unstructured.Unstructured
	// sent is how many bytes of answers it has written.
	sent atomic.Int64
}

// servedList is the list of one kind, its objects encoded.
type servedList struct {
	apiVersion, kind string
	items            [][]byte
	labels           []labels.Set // by item
	protobuf         bool
}

// serve starts a server of so many pods.
func serve(b *testing.B, pods int) *served {
	b.Helper()
	s := &served{mux: http.NewServeMux(), lists: map[string]servedList{}}
	if err := s.fill(pods); err != nil {
		b.Fatal(err)
	}
	answer := s.answer
	answer("/version", version.Info{GitVersion: "v1.37.1"})
	answer("/api", metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	answer("/api/v1", metav1.APIResourceList{GroupVersion: "v1"})
	var groups metav1.APIGroupList
	for gvr, kind := range map[string]string{tfJobs.GroupVersion().String() + "/" + tfJobs.Resource: "TFJob", podGroups.GroupVersion().String() + "/" + podGroups.Resource: "PodGroup"} {
		parts := strings.Split(gvr, "/")
		gv := metav1.GroupVersionForDiscovery{GroupVersion: parts[0] + "/" + parts[1], Version: parts[1]}
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: parts[0], Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv})
		answer("/apis/"+gv.GroupVersion, metav1.APIResourceList{GroupVersion: gv.GroupVersion, APIResources: []metav1.APIResource{
			{Name: parts[2], Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"list", "watch", "get"}}}})
	}
	answer("/apis", groups)
	for path := range s.lists {
		s.mux.HandleFunc("GET "+path, s.list)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(&counted{w, &s.sent}, r) }))
	b.Cleanup(server.Close)
	b.Cleanup(server.CloseClientConnections)
	s.kubeconfig = filepath.Join(b.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(s.kubeconfig, []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	return s
}

// answer has an object served at a path.
func (s *served) answer(path string, object any) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_ = json.NewEncoder(w).Encode(object) // a client that has gone away is its own failure
	})
}

// counted counts what is written.
type counted struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

func (c *counted) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

// list answers a list.
func (s *served) list(w http.ResponseWriter, r *http.Request) {
	l, q := s.lists[r.URL.Path], r.URL.Query()
	if q.Get("watch") != "" {
		l.watch(w, r)
		return
	}
	l = l.selected(q.Get("labelSelector"))
	from, _ := strconv.Atoi(q.Get("continue"))
	to := len(l.items)
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && q.Get("resourceVersion") != "0" {
		to = min(to, from+limit)
	}
	meta := metav1.ListMeta{ResourceVersion: "1000"}
	if to < len(l.items) {
		meta.Continue = strconv.Itoa(to)
	}
	if l.protobuf {
		l.writeProtobuf(w, meta, l.items[from:to])
	} else {
		l.writeJSON(w, meta, l.items[from:to])
	}
}

// selected is the list without what a label selector does not select.
func (l servedList) selected(selector string) servedList {
	selects, err := labels.Parse(selector)
	if err != nil || selects.Empty() {
		return l
	}
	some := l
	some.items = nil
	for i, item := range l.items {
		if selects.Matches(l.labels[i]) {
			some.items = append(some.items, item)
		}
	}
	return some
}

// writeProtobuf writes the envelope of an API server, runtime.Unknown, around a list. An error is that of a client that has gone away.
func (l servedList) writeProtobuf(w http.ResponseWriter, meta metav1.ListMeta, items [][]byte) {
	head, _ := meta.Marshal() // of two strings
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), head)
	size := len(list)
	for _, item := range items {
		size += protowire.SizeTag(2) + protowire.SizeBytes(len(item))
	}
	of := (&runtime.TypeMeta{APIVersion: l.apiVersion, Kind: l.kind + "List"})
	kind, _ := of.Marshal()
	start := append([]byte("k8s\x00"), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), kind)...)
	start = protowire.AppendVarint(protowire.AppendTag(start, 2, protowire.BytesType), uint64(size))
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_, _ = w.Write(append(start, list...))
	var tag []byte
	for _, item := range items {
		tag = protowire.AppendVarint(protowire.AppendTag(tag[:0], 2, protowire.BytesType), uint64(len(item)))
		_, _ = w.Write(tag)
		_, _ = w.Write(item)
	}
}

func (l servedList) writeJSON(w http.ResponseWriter, meta metav1.ListMeta, items [][]byte) {
	head, _ := json.Marshal(meta)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":%s,"items":[`, l.apiVersion, l.kind+"List", head)
	for i, item := range items {
		if i > 0 {
			_, _ = w.Write([]byte(","))
		}
		_, _ = w.Write(item)
	}
	_, _ = w.Write([]byte("]}"))
}

// fill encodes the objects of a planned cluster.
func (s *served) fill(pods int) error {
	p := plan(pods, metav1.Now())
	l := &loader{replicaSets: map[string]types.UID{}, jobUIDs: map[string]types.UID{}, daemonSet: uid(1)}
	var all []object
	for _, m := range p.machines {
		all = append(all, node(m, p.now), csiNode(m))
	}
	for _, svc := range p.services {
		d := deployment(svc)
		rs := replicaSet(svc, d)
		l.replicaSets[rs.Namespace+"/"+rs.Name] = uid(2000000 + len(l.replicaSets))
		all = append(all, d, rs)
	}
	all = append(all, daemonSet())
	planned, err := func() ([]*corev1.Pod, error) {
		for i, j := range p.jobs {
			u := tfJob(j, p.now)
			u.SetUID(uid(3000000 + i))
			l.jobUIDs[j.namespace+"/"+j.name] = u.GetUID()
			all = append(all, u, podGroup(j, u))
			if j.namespace == subjectNamespace && j.name == subjectName {
				s.subject = u
			}
		}
		return l.plannedPods(p)
	}()
	if err != nil {
		return err
	}
	for _, pod := range planned {
		all = append(all, admitted(pod))
	}
	for i, obj := range all {
		if err := s.add(obj, i, p.now); err != nil {
			return err
		}
	}
	return nil
}

// object is a typed object, or one of a custom resource.
type object interface {
	metav1.Object
	runtime.Object
}

// servedKinds are where lists of typed kinds are.
var servedKinds = map[string]servedList{
	"*v1.Pod":        {apiVersion: "v1", kind: "Pod"},
	"*v1.Node":       {apiVersion: "v1", kind: "Node"},
	"*v1.CSINode":    {apiVersion: "storage.k8s.io/v1", kind: "CSINode"},
	"*v1.Deployment": {apiVersion: "apps/v1", kind: "Deployment"},
	"*v1.ReplicaSet": {apiVersion: "apps/v1", kind: "ReplicaSet"},
	"*v1.DaemonSet":  {apiVersion: "apps/v1", kind: "DaemonSet"},
}

// add encodes an object with what an API server adds to every one.
func (s *served) add(obj object, number int, now metav1.Time) error {
	if obj.GetUID() == "" {
		obj.SetUID(uid(number))
	}
	obj.SetResourceVersion(strconv.Itoa(1000000 + number))
	obj.SetCreationTimestamp(now)
	obj.SetManagedFields(managed(obj, now))
	u, custom := obj.(*unstructured.Unstructured)
	l := servedKinds[fmt.Sprintf("%T", obj)]
	if custom {
		l = servedList{apiVersion: u.GetAPIVersion(), kind: u.GetKind()}
	}
	root := "/apis/"
	if l.apiVersion == "v1" {
		root = "/api/"
	}
	path := root + l.apiVersion + "/" + strings.ToLower(l.kind) + "s"
	if before, ok := s.lists[path]; ok {
		l = before
	}
	var raw []byte
	var err error
	if custom {
		raw, err = u.MarshalJSON()
	} else {
		raw, err = obj.(interface{ Marshal() ([]byte, error) }).Marshal()
		l.protobuf = true
	}
	l.items, l.labels = append(l.items, raw), append(l.labels, obj.GetLabels())
	s.lists[path] = l
	return err
}

// managed is who set which field, as the writers of pods and jobs leave it: a create, and a status.
func managed(obj object, now metav1.Time) []metav1.ManagedFieldsEntry {
	spec := `{"f:metadata":{"f:labels":{".":{}` + fields(obj.GetLabels()) + `},"f:annotations":{".":{}` + fields(obj.GetAnnotations()) + `},"f:ownerReferences":{".":{},"k:{\"uid\":\"` + string(obj.GetUID()) + `\"}":{}}},
"f:spec":{"f:containers":{"k:{\"name\":\"tensorflow\"}":{".":{},"f:args":{},"f:command":{},"f:env":{".":{},"k:{\"name\":\"TF_CONFIG\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"WORLD_SIZE\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"NCCL_DEBUG\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"CHECKPOINT_DIR\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":2222,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{},"f:nvidia.com/gpu":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{},"f:nvidia.com/gpu":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/app\"}":{".":{},"f:mountPath":{},"f:name":{}},"k:{\"mountPath\":\"/scratch\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}},"k:{\"name\":\"scratch\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}`
	status := `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:observedGeneration":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}, Subresource: subresource}
	}
	return []metav1.ManagedFieldsEntry{entry("manager", "", spec), entry("kubelet", "status", status)}
}

// fields are the keys of a map as managedFields has them.
func fields(of map[string]string) string {
	var all strings.Builder
	for key := range maps.Keys(of) {
		fmt.Fprintf(&all, `,"f:%s":{}`, key)
	}
	return all.String()
}

// admitted fills in what defaulting and admission do.
func admitted(p *corev1.Pod) *corev1.Pod {
	grace, priority, never, seconds, links := int64(30), int32(0), corev1.PreemptLowerPriority, int64(300), true
	s := &p.Spec
	s.DNSPolicy, s.TerminationGracePeriodSeconds, s.SecurityContext, s.EnableServiceLinks = corev1.DNSClusterFirst, &grace, &corev1.PodSecurityContext{}, &links
	s.ServiceAccountName, s.DeprecatedServiceAccount, s.Priority, s.PreemptionPolicy = "default", "default", &priority, &never
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	for i := range s.Containers {
		c := &s.Containers[i]
		c.TerminationMessagePath, c.TerminationMessagePolicy, c.ImagePullPolicy = corev1.TerminationMessagePathDefault, corev1.TerminationMessageReadFile, corev1.PullIfNotPresent
	}
	return p
}
