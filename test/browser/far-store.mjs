// Loaded before the server of a starter: its file store becomes a store that is further away. CHAT_STORE is `slow`, where each
// question takes 5 ms, or the address of a Postgres database.
import { register } from 'node:module'

const resolver = `
  const far = ${JSON.stringify(new URL('far-store-entry.mjs', import.meta.url).href)}
  export const resolve = (specifier, context, next) =>
    specifier === 'statewright/stores/file' && context.parentURL !== far
      ? { url: far, shortCircuit: true }
      : next(specifier, context)
`
register(`data:text/javascript,${encodeURIComponent(resolver)}`)
