// What is used here of CPython's stable interface, which is the same in every version: headers need not be installed, and
// one library fits all interpreters of a machine. Not for free-threaded or debug builds, whose objects differ.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct PyObject {
  ssize_t references; // To be changed by Py_IncRef and Py_DecRef only.
  struct PyObject *type;
} PyObject;
typedef struct PyMethodDef {
  const char *name;
  PyObject *(*function)(PyObject *module, PyObject *arguments);
  int flags;
  const char *doc;
} PyMethodDef;
typedef struct PyModuleDef {
  PyObject base;
  void *init;
  ssize_t index;
  PyObject *copy;
  const char *name, *doc;
  ssize_t size;
  PyMethodDef *methods;
  void *slots, *traverse, *clear, *free;
} PyModuleDef;
enum { METH_VARARGS = 1, PYTHON_ABI_VERSION = 3, Py_DTSF_ADD_DOT_0 = 2 };

extern PyObject PyDict_Type, PyList_Type, PyTuple_Type, PyUnicode_Type, PyLong_Type, PyFloat_Type;
extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern PyObject *PyExc_AttributeError, *PyExc_ValueError, *PyExc_OSError;

void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);
PyObject *PyModule_Create2(PyModuleDef *definition, int version);
int PyArg_ParseTuple(PyObject *arguments, const char *format, ...);
PyObject *PyObject_CallFunctionObjArgs(PyObject *callable, ...);
PyObject *PyObject_CallMethodObjArgs(PyObject *object, PyObject *name, ...);
PyObject *PyObject_GetAttrString(PyObject *object, const char *name);
PyObject *PySys_GetObject(const char *name);
PyObject *PyImport_ImportModule(const char *name);

void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *thread);
int PyErr_CheckSignals(void);
PyObject *PyErr_Occurred(void);
int PyErr_ExceptionMatches(PyObject *exception);
void PyErr_Clear(void);
void PyErr_Fetch(PyObject **type, PyObject **value, PyObject **traceback);
void PyErr_NormalizeException(PyObject **type, PyObject **value, PyObject **traceback);
void PyErr_SetString(PyObject *type, const char *message);
PyObject *PyErr_SetFromErrno(PyObject *type);
int PyException_SetTraceback(PyObject *exception, PyObject *traceback);

PyObject *PyBytes_FromStringAndSize(const char *bytes, ssize_t length);
int PyBytes_AsStringAndSize(PyObject *object, char **bytes, ssize_t *length);
PyObject *PyUnicode_DecodeUTF8(const char *bytes, ssize_t length, const char *errors);
PyObject *PyUnicode_FromString(const char *bytes);
PyObject *PyUnicode_InternFromString(const char *bytes);
const char *PyUnicode_AsUTF8AndSize(PyObject *text, ssize_t *length);
PyObject *PyLong_FromLongLong(long long value);
long long PyLong_AsLongLongAndOverflow(PyObject *number, int *overflow);
PyObject *PyFloat_FromDouble(double value);
double PyFloat_AsDouble(PyObject *number);
double PyOS_string_to_double(const char *text, char **end, PyObject *overflow);
char *PyOS_double_to_string(double value, char format, int precision, int flags, int *type);
void PyMem_Free(void *memory);
PyObject *PyDict_New(void);
int PyDict_SetItem(PyObject *dictionary, PyObject *key, PyObject *value);
int PyDict_Next(PyObject *dictionary, ssize_t *position, PyObject **key, PyObject **value);
PyObject *PyDict_GetItemWithError(PyObject *dictionary, PyObject *key);
PyObject *PyModule_GetDict(PyObject *module);
PyObject *PyList_New(ssize_t length);
int PyList_Append(PyObject *list, PyObject *item);
ssize_t PyList_Size(PyObject *list);
PyObject *PyList_GetItem(PyObject *list, ssize_t index);
ssize_t PyTuple_Size(PyObject *tuple);
PyObject *PyTuple_GetItem(PyObject *tuple, ssize_t index);
