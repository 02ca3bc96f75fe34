// Loaded with `--import`: resolves the packages of the adapters in bench/peers, so that one lock file serves both.
import * as module from 'node:module'

const peers = new URL('../bench/peers/', import.meta.url).href
const adapters = new URL('./adapters/', import.meta.url).href
const isPackage = (specifier) => !/^(?:\.|\/|node:|file:)/.test(specifier)
const isOurs = (url) => url.startsWith(`${adapters}statewright`)

// Node 20 has no such hooks. The peers run on a newer Node.
module.registerHooks?.({
  resolve(specifier, context, next) {
    const { parentURL = '' } = context
    const isPeer = parentURL.startsWith(adapters) && !isOurs(parentURL) && isPackage(specifier)
    return next(specifier, isPeer ? { ...context, parentURL: peers } : context)
  },
})
