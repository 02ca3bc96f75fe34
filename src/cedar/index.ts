/** Decides calls with Cedar policies. Needs the optional package `@cedar-policy/cedar-wasm`. */
export { cedar, type CedarEngine, type CedarEntity, type CedarOptions } from './cedar-policy.js'
