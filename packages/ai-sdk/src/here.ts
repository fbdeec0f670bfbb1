// Where this package lies, for lookups of its neighbours. The CommonJS build has its own of these.

export const here = import.meta.url;
