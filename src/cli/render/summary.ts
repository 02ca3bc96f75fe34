export { styleOf, summary } from '../../format/summary.js'
