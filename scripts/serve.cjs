// The server of a clone that has been built.
'use strict';

require('./program.cjs').runProgram('standalone');
