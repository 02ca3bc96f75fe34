// Loaded before a starter's server to replace its file store with a remote store. CHAT_STORE is `slow` (each
// query takes 5 ms) or the address of a Postgres database.
import { register } from 'node:module'

const resolver = `
  const far = ${JSON.stringify(new URL('far-store-entry.mjs', import.meta.url).href)}
  export const resolve = (specifier, context, next) =>
    specifier === 'statewright/stores/file' && context.parentURL !== far
      ? { url: far, shortCircuit: true }
      : next(specifier, context)
`
register(`data:text/javascript,${encodeURIComponent(resolver)}`)
