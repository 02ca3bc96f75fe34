export * from '../../../src/stores/file/index.js'
export * from '../../../src/index.js'
