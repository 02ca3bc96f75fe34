// Runs a CommonJS bundle with V8's code cache, which the first process that ends writes.
const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { constants, Script } = require('node:vm')

module.exports = function runCached(file) {
  const cache = `${file}.cache`
  const cachedData = existsSync(cache) ? readFileSync(cache) : undefined
  const script = new Script(Module.wrap(readFileSync(file, 'utf8')), {
    filename: file,
    cachedData,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  const module = new Module(file)
  script.runInThisContext()(module.exports, Module.createRequire(file), module, file, path.dirname(file))
  if (cachedData !== undefined) return
  process.on('exit', () => {
    // Other processes may read it at the same time.
    writeFileSync(`${cache}-${process.pid}`, script.createCachedData())
    renameSync(`${cache}-${process.pid}`, cache)
  })
}
