import { fileStore } from 'statewright/stores/file'
import { postgresStore } from 'statewright/stores/postgres'

/** The store of a claim's processes: a folder, or a schema of a Postgres server. */
export function openClaimStore({ dir, url, schema }) {
  return url === undefined ? fileStore({ dir }) : postgresStore({ connectionString: url, schema })
}
