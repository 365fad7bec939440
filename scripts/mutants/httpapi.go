package main

const (
	httpapiHold      = "shared/httpapi/hold.go"
	httpapiProblem   = "shared/httpapi/problem.go"
	httpapiPrincipal = "shared/httpapi/principal.go"
)

func httpapiMutants() []mutant {
	return []mutant{
		{
			name:  "read anybody's hold",
			edits: []edit{{httpapiHold, "if hold.Owner != p.Subject && ", `if hold.Owner == "" && `}},
			harm:  "anybody who learns an id reads what another has bought, and for how much",
		},
		{
			name:  "a foreign hold is forbidden",
			edits: []edit{{httpapiHold, "x.fail(ledger.HoldNotFound())", `x.fail(&refusal{code: codeForbidden, detail: "the hold is another's"})`}},
			harm:  "ids of other people's holds can be found by trying",
		},
		{
			name:  "list anybody's holds",
			edits: []edit{{httpapiHold, "case p.isOperator(a.operatorGroup):", `case p.Subject != "":`}},
			harm:  "anybody can list what another has bought",
			tests: []string{"./shared/httpapi"},
		},
		{
			name:  "the body means nothing",
			edits: []edit{{httpapiHold, "meaning{Body: linesOf(quotes)}", "meaning{}"}},
			harm:  "who uses a key again for another order gets the old one, and believes to have the new",
		},
		{
			name:  "the id means nothing",
			edits: []edit{{httpapiHold, "meaning{ID: id})", "meaning{})"}},
			harm:  "who cancels a second hold under the same key is told that it is cancelled, and it is not",
			tests: []string{"./shared/httpapi"},
		},
		{
			name:  "a list ends after one page",
			edits: []edit{{httpapiHold, "	list.NextCursor = cursorOrNil(cursor)\n", ""}},
			harm:  "who has many holds sees only the newest",
			tests: []string{"./shared/httpapi"},
		},
		{
			name:  "a list begins anew within a page",
			edits: []edit{{httpapiHold, "page := ledger.Page{Limit: limit - len(list.Holds), After: cursor}", "page := ledger.Page{Limit: limit}"}},
			harm:  "who pages through a long list sees its first page again and again",
			tests: []string{"./shared/httpapi"},
		},
		{
			name:  "any token opens any route",
			edits: []edit{{httpapiPrincipal, "if p.has(s) && (s != topology.ScopeOperate || p.isOperator(operatorGroup)) {", `if s != "" {`}},
			harm:  "a buyer confirms an order without paying for it",
			tests: []string{"./shared/httpapi"},
		},
		{
			name:  "not available is a refusal",
			edits: []edit{{httpapiProblem, `{http.StatusServiceUnavailable, "Not available now"}`, `{http.StatusConflict, "Not available now"}`}},
			harm:  "clients do not ask again after a short disturbance, and tell their users that the seats are gone",
		},
	}
}
