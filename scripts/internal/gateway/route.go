package gateway

import (
	"net/http"
	"strings"

	"holdfast/shared/topology"
)

// route is a route of the topology, ready for matching.
type route struct {
	topology.Route
	key      string // method and path, as functions and logs see it
	segments []string
}

func parseRoute(described topology.Route) route {
	return route{
		Route:    described,
		key:      described.Method + " " + described.Path,
		segments: strings.Split(described.Path, "/"),
	}
}

// match finds the route of a request and its path parameters. The path is decoded
// before it is matched, so an encoded slash makes a segment of its own (case H3).
func (g *Gateway) match(r *http.Request) (route, map[string]string, bool) {
	segments := strings.Split(r.URL.Path, "/")
	for _, candidate := range g.routes {
		if candidate.Method != r.Method {
			continue
		}
		if parameters, matches := candidate.parameters(segments); matches {
			return candidate, parameters, true
		}
	}
	return route{}, nil, false
}

func (r route) parameters(segments []string) (map[string]string, bool) {
	if len(segments) != len(r.segments) {
		return nil, false
	}
	parameters := make(map[string]string)
	for i, pattern := range r.segments {
		name, isParameter := strings.CutPrefix(pattern, "{")
		switch {
		case !isParameter && pattern != segments[i], isParameter && segments[i] == "":
			return nil, false
		case isParameter:
			parameters[strings.TrimSuffix(name, "}")] = segments[i]
		}
	}
	return parameters, true
}
