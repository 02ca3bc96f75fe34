// The store of the measurement, in a folder or a database.
import { fileStore } from '../../dist/src/stores/file/index.js'
import { postgresStore } from '../../dist/src/stores/postgres/index.js'

export const openStore = (where) =>
  where.startsWith('postgres') ? postgresStore({ connectionString: where }) : fileStore({ dir: where })
