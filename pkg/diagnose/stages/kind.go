package stages

import "k8s.io/apimachinery/pkg/runtime/schema"

func gk(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
