export { fileStore } from '../../../src/stores/file/index.js'
