package bench

import (
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// How often something changes in a cluster of 5,000 nodes: a kubelet writes its node's status every five minutes whatever happens, and of
// the pods a few start, end or crash.
const (
	nodeEvery = 60 * time.Millisecond
	podEvery  = 200 * time.Millisecond
)

// watch sends the heartbeats of nodes and the restarts of containers until the client goes away; other kinds do not change.
func (l servedList) watch(w http.ResponseWriter, r *http.Request) {
	contentType := runtime.ContentTypeJSON
	if l.protobuf {
		contentType = runtime.ContentTypeProtobuf
	}
	w.Header().Set("Content-Type", contentType+";stream=watch")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	changed, every := map[string]func([]byte, int) ([]byte, error){"Node": heartbeat, "Pod": restart}[l.kind], map[string]time.Duration{"Node": nodeEvery, "Pod": podEvery}[l.kind]
	if changed == nil {
		<-r.Context().Done()
		return
	}
	ticker, random := time.NewTicker(every), rand.New(rand.NewPCG(3, 4))
	defer ticker.Stop()
	for version := 2000000; ; version++ {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
		raw, err := changed(l.items[random.IntN(len(l.items))], version)
		if err == nil {
			err = l.send(w, raw)
		}
		if err != nil {
			return // the client has gone away
		}
	}
}

// send writes an event of a watch in protobuf: its length, and the event with the object in an envelope.
func (l servedList) send(w http.ResponseWriter, object []byte) error {
	envelope := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: l.apiVersion, Kind: l.kind}, Raw: object}
	raw, err := envelope.Marshal()
	if err != nil {
		return err
	}
	event := &metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), raw...)}}
	frame, err := event.Marshal()
	if err != nil {
		return err
	}
	if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		return err
	}
	w.(http.Flusher).Flush()
	return nil
}

func heartbeat(raw []byte, version int) ([]byte, error) {
	var n corev1.Node
	if err := n.Unmarshal(raw); err != nil {
		return nil, err
	}
	n.ResourceVersion = strconv.Itoa(version)
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
	}
	return n.Marshal()
}

func restart(raw []byte, version int) ([]byte, error) {
	var p corev1.Pod
	if err := p.Unmarshal(raw); err != nil {
		return nil, err
	}
	p.ResourceVersion = strconv.Itoa(version)
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].RestartCount++
	}
	return p.Marshal()
}
