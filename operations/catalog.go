package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/catalog"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/provider"
	"github.com/switchyard-dev/switchyard/runtime"
)

// CatalogModelListInput selects models.
type CatalogModelListInput struct {
	ProviderID string `json:"providerID,omitempty"`
}

// CatalogModelList lists the models that the server knows.
var CatalogModelList = op.New(op.Spec{
	Name: "catalog.model.list", Method: "GET", Path: "/api/catalog/model", Summary: "List flattened catalog models.",
}, func(_ context.Context, s *runtime.Server, in CatalogModelListInput) (op.Tagged[[]catalog.Model], error) {
	known := s.Models.Catalog()
	if in.ProviderID == "" {
		return op.Tagged[[]catalog.Model]{Value: known.Models(), ETag: known.ETag()}, nil
	}
	out := []catalog.Model{}
	for _, m := range known.Models() {
		if m.ProviderID == in.ProviderID {
			out = append(out, m)
		}
	}
	return op.Tagged[[]catalog.Model]{Value: out}, nil
})

// CatalogModelGetInput names a model.
type CatalogModelGetInput struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID" doc:"May hold slashes, as they are or as %2F."`
}

// CatalogModelGet reads one model.
var CatalogModelGet = op.New(op.Spec{
	Name: "catalog.model.get", Method: "GET", Path: "/api/catalog/model/{providerID}/{modelID}", Summary: "Get one catalog model.",
	Tail: true, Codes: []fault.Code{fault.ModelNotFound}, Example: CatalogModelGetInput{ProviderID: "openrouter", ModelID: "openai/gpt-4o"},
}, func(_ context.Context, s *runtime.Server, in CatalogModelGetInput) (op.Tagged[catalog.Model], error) {
	m, ok := s.Models.Catalog().Get(in.ProviderID, in.ModelID)
	if !ok {
		return op.Tagged[catalog.Model]{}, fault.New(fault.ModelNotFound, "there is no model %s/%s", in.ProviderID, in.ModelID).
			With("providerID", in.ProviderID).With("modelID", in.ModelID)
	}
	return op.Tagged[catalog.Model]{Value: m}, nil
})

// ProviderList is the inventory of providers of a context.
var ProviderList = op.New(op.Spec{
	Name: "provider.list", Method: "GET", Path: "/api/provider", Summary: "Provider inventory for the runtime context.",
	Codes: []fault.Code{fault.ConfigInvalid},
}, func(ctx context.Context, rt *runtime.Request, _ Empty) (op.Tagged[provider.List], error) {
	inventory, err := rt.Parts().Providers(ctx)
	if err != nil {
		return op.Tagged[provider.List]{}, err
	}
	return op.Tagged[provider.List]{Value: inventory.List()}, nil
})
