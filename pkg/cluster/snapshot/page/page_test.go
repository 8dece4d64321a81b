package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func list(count int) *corev1.PodList {
	l := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}}
	for i := range count {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
		p.Spec.NodeName = strings.Repeat("n", i*i) // of very different size
		l.Items = append(l.Items, p)
	}
	return l
}

// encoders are what an API server answers with.
func encoders(t *testing.T) map[string]func(runtime.Object) []byte {
	return map[string]func(runtime.Object) []byte{
		"protobuf": func(obj runtime.Object) []byte {
			var out bytes.Buffer
			if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		},
		"json": func(obj runtime.Object) []byte {
			out, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			return out
		},
	}
}

func read(in io.Reader) (names []string, meta metav1.ListMeta, err error) {
	meta, err = Read(in, func(item Item) error {
		p := corev1.Pod{}
		var err error
		if item.Protobuf {
			err = p.Unmarshal(item.Raw)
		} else {
			err = json.Unmarshal(item.Raw, &p)
		}
		names = append(names, p.Name)
		return err
	})
	return names, meta, err
}

func TestRead(t *testing.T) {
	for name, encode := range encoders(t) {
		for _, count := range []int{0, 1, 40} {
			want := list(count)
			data := encode(want)
			for how, in := range map[string]io.Reader{"at once": bytes.NewReader(data), "in bits": iotest.OneByteReader(bytes.NewReader(data))} {
				t.Run(fmt.Sprintf("%s, %d, %s", name, count, how), func(t *testing.T) {
					got, meta, err := read(in)
					var names []string
					for _, p := range want.Items {
						names = append(names, p.Name)
					}
					if err != nil || !slices.Equal(got, names) || meta.Continue != "more" || meta.ResourceVersion != "7" {
						t.Errorf("got %v, %+v, %v", got, meta, err)
					}
				})
			}
		}
	}
}

// A connection that breaks must not pass for a short list.
func TestReadIsTruncated(t *testing.T) {
	for name, encode := range encoders(t) {
		whole := encode(list(5))
		end := len(whole)
		if name == "protobuf" {
			end -= len("\x1a\x00\x22\x00") // two empty fields of the envelope, after the list
		}
		for length := range end {
			if _, _, err := read(bytes.NewReader(whole[:length])); err == nil {
				t.Errorf("%s: %d of %d bytes: no error", name, length, len(whole))
			}
		}
	}
}

func TestReadStops(t *testing.T) {
	want := errors.New("enough")
	for name, encode := range encoders(t) {
		seen := 0
		_, err := Read(bytes.NewReader(encode(list(5))), func(Item) error {
			if seen++; seen == 2 {
				return want
			}
			return nil
		})
		if !errors.Is(err, want) || seen != 2 {
			t.Errorf("%s: %v after %d", name, err, seen)
		}
	}
	if _, _, err := read(strings.NewReader(`{"items": null, "metadata": {}, "kind": "PodList"}`)); err != nil {
		t.Errorf("a list without items: %v", err)
	}
	if _, _, err := read(strings.NewReader("<html>not found</html>")); err == nil {
		t.Error("not a list: no error")
	}
}

func TestReadBrokenJSON(t *testing.T) {
	for _, in := range []string{"", "[]", `{"items": {}}`, `{"items": 1}`, `{"items": [1 2]}`, `{"items": [1,]}`, `{"items" [1]}`, `{items: [1]}`, `{"items": [], }`, `{"items": [] "metadata": {}}`,
		`{"items": [tr"e]}`, `{"other": tr"e}`, `{"items": [{"a": "\q"}]}`, `{"metadata": []}`, `{"items": [` + strings.Repeat("[", 20000)} {
		if _, err := Read(strings.NewReader(in), func(Item) error { return nil }); err == nil {
			t.Errorf("%.20s: no error", in)
		}
	}
}

// What is no list does not pass for an empty one: a page for logging in, a refusal.
func TestNoList(t *testing.T) {
	for answer, want := range map[string]string{
		`{"message": "please log in"}`: "read list: the server's answer is no object of Kubernetes",
		`{}`:                           "read list: the server's answer is no object of Kubernetes",
		`{"kind": "Status", "message": "denied"}`:          "read list: the server's answer is no list, but of kind \"Status\"",
		`{"kind": "PodList", "metadata": {}}`:              "read list: the server's answer of kind PodList has no items",
		`{"kind": "PodList", "items": null}`:               "",
		`{"metadata": {}, "items": [], "kind": "PodList"}`: "",
	} {
		_, _, err := read(strings.NewReader(answer))
		if got := fmt.Sprint(err); (err != nil || want != "") && got != want {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
