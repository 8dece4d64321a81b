package intern

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// The numbers of fields of a node in protobuf.
const (
	nodeStatus        = 3
	nodeConditions    = 4
	statusCapacity    = 1
	statusAllocatable = 2
)

// Node decodes a node. Nodes of the same size share their capacity and what is allocatable.
func (p *Pool) Node(data []byte, kept Kept) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, prune.Each(data, func(number int, whole, content []byte) error {
		switch number {
		case objectMeta:
			return p.Meta(content, &node.ObjectMeta, kept)
		case nodeStatus:
			return p.nodeStatus(content, &node.Status, kept)
		}
		return node.Unmarshal(whole)
	})
}

func (p *Pool) nodeStatus(data []byte, status *corev1.NodeStatus, kept Kept) error {
	amounts, rest := p.scratch[0][:0], p.scratch[1][:0]
	err := prune.Each(data, func(number int, whole, content []byte) error {
		switch {
		case number == statusCapacity || number == statusAllocatable:
			amounts = append(amounts, whole...)
		case number != nodeConditions || kept.Condition == nil || kept.Condition(content):
			rest = append(rest, whole...)
		}
		return nil
	})
	p.scratch[0], p.scratch[1] = amounts, rest
	if err != nil {
		return err
	}
	if err := status.Unmarshal(rest); err != nil {
		return err
	}
	shared, err := p.amounts.get(amounts, smallCache, func(amounts []byte) (corev1.NodeStatus, error) {
		var status corev1.NodeStatus
		err := status.Unmarshal(amounts)
		return status, err
	})
	status.Capacity, status.Allocatable = shared.Capacity, shared.Allocatable
	return err
}
