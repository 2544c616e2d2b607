// Sets of functions with the same imports.
import { jacksonJar, virtualEnvironmentZip } from './archives.js';

/** Code of a function: source, or an archive in base64. */
export interface FunctionCode {
  code: string;
  binary: boolean;
  main?: string;
}

/** Functions with the same imports. */
export interface ModuleSet {
  kind: string;
  memoryMiB: number;
  requirements?: readonly string[];
  /**
   * Makes the source of the function of a number. The function sleeps for `holdS`, or until `untilS` (epoch), when it reads its
   * memory (Linux: smaps_rollup), sleeps for 2 s more and answers with what it read.
   */
  source?(number: number): string;
  /** Makes, in an empty folder, the code that all functions of the set have; in place of `source`. */
  build?(folder: string): Promise<FunctionCode>;
  /** Whether processes that have its modules are made ahead. */
  learns: boolean;
  /** Whether further instances are copies of the first one's loaded state. */
  snapshot?: boolean;
  /** Whether a start lasts until the answer: Java initialises classes in the first run. */
  untilAnswer?: boolean;
}

const python = (imports: string, result: string): ((number: number) => string) => {
  return (number) => `import time
${imports}

def main(args):
    memory = None
    if "untilS" in args:
        time.sleep(max(0, args["untilS"] - time.time()))
        memory = open("/proc/self/smaps_rollup").read()
    time.sleep(2 if memory else args.get("holdS", 0))
    return {"number": ${number}, "result": ${result}, "memory": memory}
`;
};

const nodejs = (number: number): string => `const openwhisk = require('openwhisk');
const express = require('express');
const redis = require('redis');
const { readFileSync } = require('fs');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
exports.main = async ({ holdS = 0, untilS }) => {
  if (untilS !== undefined) await sleep(Math.max(0, untilS * 1000 - Date.now()));
  const memory = untilS === undefined ? null : readFileSync('/proc/self/smaps_rollup', 'utf8');
  await sleep(memory === null ? holdS * 1000 : 2000);
  return { number: ${number}, result: [openwhisk, express, redis].map((one) => typeof one), memory };
};
`;

/** A function that reads all of its model if `reads` is 1, and answers with how long that took. */
const model = (number: number): string => `import time
import numpy
weights = numpy.ones(500 << 18, dtype=numpy.float32)

def main(args):
    began = time.perf_counter()
    total = float(weights.sum()) if args.get("reads") else 0
    readMs = (time.perf_counter() - began) * 1000
    time.sleep(args.get("holdS", 0))
    return {"number": ${number}, "result": float(weights[0]), "total": total, "readMs": readMs}
`;

const modelSet = {
  kind: 'python:default',
  memoryMiB: 1024,
  requirements: ['numpy==2.2.6'],
  learns: false,
  source: model,
};

/** By the name in figures. Nothing is declared but packages that an image lacks. */
export const moduleSets: Readonly<Record<string, ModuleSet>> = {
  pythonImage: {
    kind: 'python:default',
    memoryMiB: 256,
    learns: true,
    source: python('import bs4, dateutil.parser, lxml.etree, requests', 'requests.__version__'),
  },
  nodejsImage: { kind: 'nodejs:default', memoryMiB: 256, learns: true, source: nodejs },
  numpy: {
    kind: 'python:default',
    memoryMiB: 512,
    requirements: ['numpy==2.2.6', 'scipy==1.15.3'],
    learns: true,
    source: python('import numpy, scipy.optimize, scipy.stats', 'float(numpy.arange(4).sum())'),
  },
  pandas: {
    kind: 'python:default',
    memoryMiB: 512,
    requirements: ['numpy==2.2.6', 'pandas==2.2.3'],
    learns: true,
    source: python('import pandas', 'int(pandas.Series([1, 2]).sum())'),
  },
  archive: {
    kind: 'python:default',
    memoryMiB: 256,
    learns: false,
    build: (folder) =>
      virtualEnvironmentZip(folder, python('import jinja2, requests', 'requests.__version__')(0), [
        'requests==2.32.3',
        'jinja2==3.1.4',
      ]),
  },
  jackson: {
    kind: 'java:default',
    memoryMiB: 256,
    learns: false,
    untilAnswer: true,
    build: (folder) => jacksonJar(folder, 'com.fasterxml.jackson.core:jackson-databind:2.17.2'),
  },
  model: { ...modelSet, snapshot: true },
  modelLoaded: modelSet,
};
