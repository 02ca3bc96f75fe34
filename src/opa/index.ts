/** Decides calls with the policies of an Open Policy Agent server. */
export { opa, type OpaOptions } from './opa-policy.js'
