// Package packing keeps gangs together and accelerators free for those who ask for them.
//
// The engine's own scoring spreads pods, so that the next one finds some room everywhere. Gangs need the opposite: large gaps on
// few nodes. The plugin GangScore prefers the fullest nodes in terms of the accelerators that a pod asks for; keeps pods that ask
// for none off nodes that have some, as long as others do; and puts members of a gang beside each other. What users prefer (node
// affinity, taints to avoid) still counts more. The planner chooses among the placements of a gang by the same preference; this
// plugin decides for pods on their own and for members that no plan covers.
package packing
