// Whether there is more than one tenant: a person who is alone does not want to hear of tenants.

const seen = new Set();

/** Takes in whose these sessions or requests are. */
export function learnTenants(rows) {
  for (const row of rows) if (row.tenant) seen.add(row.tenant);
}

export const severalTenants = () => seen.size > 1;
