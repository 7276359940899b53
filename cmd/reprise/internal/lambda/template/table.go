package template

// Tables of DynamoDB run here if their key is one string and they have no streams and indexes:
// records of idempotency need no more.
var tableSchema = schema{
	"TableName": raw, "KeySchema": used, "AttributeDefinitions": used,
	"BillingMode": harmless, "ProvisionedThroughput": harmless, "OnDemandThroughput": harmless, "TimeToLiveSpecification": harmless,
	"SSESpecification": harmless, "PointInTimeRecoverySpecification": harmless, "DeletionProtectionEnabled": harmless,
	"TableClass": harmless, "Tags": harmless, "ContributorInsightsSpecification": harmless, "ResourcePolicy": harmless,
	"WarmThroughput": harmless,
}

var (
	keyElementSchema = schema{"AttributeName": used, "KeyType": used}
	definitionSchema = schema{"AttributeName": used, "AttributeType": used}
)

// isTable reports whether r is a table that is run.
func (r *resource) isTable() bool {
	if r.kind != tableType {
		return false
	}
	for _, p := range members(r.properties) {
		if _, known := tableSchema[p.key]; !known {
			return false
		}
	}
	keys, definitions := r.properties.get("KeySchema"), r.properties.get("AttributeDefinitions")
	if keys == nil || definitions == nil || len(keys.items) != 1 || len(definitions.items) != 1 {
		return false
	}
	kind := definitions.items[0].get("AttributeType")
	return kind != nil && kind.text == "S"
}

// table reads a table that is run.
func (l *loader) table(r *resource) {
	if !r.isTable() {
		return // the finding about idle resources names it
	}
	p := r.place()
	properties := l.open(p, r.properties, tableSchema)
	t := Table{ID: r.id, Name: l.nameOf(r), Line: r.line}
	for _, n := range l.elements(p.at("KeySchema"), properties["KeySchema"]) {
		key := l.open(p.at("KeySchema"), n, keyElementSchema)
		t.Key = l.scalar(p.at("KeySchema"), key["AttributeName"])
		l.choice(p.at("KeySchema"), key["KeyType"], "HASH")
	}
	for _, n := range l.elements(p.at("AttributeDefinitions"), properties["AttributeDefinitions"]) {
		definition := l.open(p.at("AttributeDefinitions"), n, definitionSchema)
		if name := l.scalar(p.at("AttributeDefinitions"), definition["AttributeName"]); name != t.Key {
			l.refuse(p.at("AttributeDefinitions"), n, "%q is not the attribute of KeySchema: define that", name)
		}
	}
	l.template.Tables = append(l.template.Tables, t)
}
